"""Tests of ``export.LitData``: the bytes of the format, and what LitData's own reader gives."""

import json
import struct
from itertools import chain, pairwise
from pathlib import Path

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, ExportError
from tests.datasets.exporters.folders import names_in

LENGTHS = (3, 0, 9, 4, 4, 1, 11)
RECORDS = [{"input_ids": [100 * n + at for at in range(size)]} for n, size in enumerate(LENGTHS)]
TOKENS = list(chain.from_iterable(one["input_ids"] for one in RECORDS))


def exported(place: Path, records=RECORDS, **options) -> Path:
    options = {"max_tokens": 4, "shard_bytes": 60, **options}
    return Path(data.export.LitData(place / "corpus", **options)(records))


def chunks(folder: Path) -> list[list[list[int]]]:
    """Read the items of each chunk, by the description of the format."""
    found = []
    for chunk in json.loads((folder / "index.json").read_bytes())["chunks"]:
        content = (folder / chunk["filename"]).read_bytes()
        (count,) = struct.unpack_from("<I", content)
        places = struct.unpack_from(f"<{count + 1}I", content, 4)
        assert (places[-1], chunk["chunk_bytes"], chunk["chunk_size"]) == (
            len(content),
            len(content),
            count,
        )
        items = [
            list(struct.unpack_from(f"<{(end - start) // 4}i", content, start))
            for start, end in pairwise(places)
        ]
        assert chunk["dim"] == sum(map(len, items))
        found.append(items)
    return found


def test_chunks_have_whole_blocks_and_all_tokens_in_order(tmp_path):
    folder = exported(tmp_path)

    assert names_in(folder)[1:] == [*(f"chunk-0-{n}.bin" for n in range(3)), "index.json"]
    found = chunks(folder)
    assert [sum(map(len, items)) for items in found] == [12, 12, 8]
    assert list(chain.from_iterable(chain.from_iterable(found))) == TOKENS


def test_an_end_is_put_behind_each_record_and_no_records_make_no_chunk(tmp_path):
    found = chunks(exported(tmp_path, RECORDS[:3], end_id=7, shard_bytes=1 << 20))
    assert found == [[[0, 1, 2, 7], [7], [*range(200, 209), 7]]]
    assert chunks(exported(tmp_path, [])) == []


def test_equal_records_give_equal_bytes(tmp_path):
    first, second = (exported(tmp_path / name) for name in "ab")
    for name in names_in(first):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_what_does_not_fit_is_refused(tmp_path):
    for options in ({"shard_bytes": 15}, {"shard_bytes": 1 << 32}, {"dtype": "int8"}):
        with pytest.raises(DefinitionError):
            exported(tmp_path, **options)
    with pytest.raises(ExportError, match=r"line 2\), column 'input_ids': it holds 256"):
        exported(tmp_path, [{"input_ids": [1]}, {"input_ids": [256]}], dtype="uint8")
    assert names_in(tmp_path) == ["results"]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "int64"])
@pytest.mark.filterwarnings("ignore:The given buffer is not writable")
def test_the_reader_of_litdata_gives_the_blocks(tmp_path, dtype):
    reason = "litdata and torch are not installed; they are no part of any extra"
    litdata = pytest.importorskip("litdata", reason=reason)
    from litdata.streaming.item_loader import TokensLoader

    records = [{"input_ids": [at % 50 for at in range(size)]} for size in (30, 1, 70, 24)]
    tokens = list(chain.from_iterable(one["input_ids"] for one in records))
    folder = exported(tmp_path, records, max_tokens=5, dtype=dtype, shard_bytes=200)

    found = litdata.StreamingDataset(str(folder), item_loader=TokensLoader(block_size=5))
    blocks = [found[at].tolist() for at in range(len(found))]
    assert blocks == [tokens[start : start + 5] for start in range(0, len(tokens) // 5 * 5, 5)]
