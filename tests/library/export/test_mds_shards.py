"""Tests of ``export.MDS``: the bytes of the format, and what the readers of MosaicML give."""

import base64
import hashlib
import json
import struct
from pathlib import Path

import pytest
import zstandard

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, ExportError
from tests.datasets.exporters.folders import names_in

COLUMNS = {
    "ids": "ndarray:int32",
    "fixed": "ndarray:uint16:2",
    "free": "ndarray",
    "text": "str",
    "n": "int",
    "x": "float64",
    "y": "float32",
    "small": "uint8",
    "data": "bytes",
    "meta": "json",
}
RECORDS = [
    {
        "ids": list(range(n + 1)),
        "fixed": [n, 65_535],
        "free": [[n, 1], [2, 3]] if n % 2 else [0.5] * 300,
        "text": "schön " * n,
        "n": n - (1 << 40),
        "x": n / 3,
        "y": n / 4,
        "small": n,
        "data": base64.b64encode(bytes(range(n))).decode(),
        "meta": {"a": [n, None, "ö"]} if n else None,
        "other": "left out",
    }
    for n in range(40)
]


def exported(place: Path, records=RECORDS, **options) -> Path:
    return Path(data.export.MDS(place / "corpus", **options)(records))


def index_of(folder: Path) -> list[dict]:
    return json.loads((folder / "index.json").read_bytes())["shards"]


def test_a_shard_has_the_layout_of_the_format(tmp_path):
    records = [{"text": "a", "n": 1}, {"text": "ö", "n": -2}]
    folder = exported(tmp_path, records, columns={"text": "str", "n": "int"})

    assert names_in(folder) == [".dataops_export", "index.json", "shard.00000.mds"]
    (shard,) = index_of(folder)
    written = (folder / "shard.00000.mds").read_bytes()
    facts = shard.pop("raw_data")
    assert facts["hashes"] == {"sha1": hashlib.sha1(written).hexdigest()}  # noqa: S324
    assert facts["bytes"] == len(written)
    assert (shard.pop("samples"), shard.pop("zip_data")) == (2, None)
    config = json.dumps(shard, sort_keys=True).encode()
    begin = 16 + len(config)
    samples = [
        struct.pack("<Iq", 1, 1) + b"a",
        struct.pack("<Iq", 2, -2) + "ö".encode(),
    ]
    places = [begin, begin + len(samples[0]), begin + sum(map(len, samples))]
    assert written == struct.pack("<4I", 2, *places) + config + b"".join(samples)
    assert shard["column_names"] == ["n", "text"]
    assert shard["column_sizes"] == [8, None]


def test_columns_are_those_of_the_first_record(tmp_path):
    records = [{"t": "a", "i": 1, "f": 0.5, "l": [1], "b": True}, {"t": "", "i": 2, "f": 1.5}]
    (shard,) = index_of(exported(tmp_path, records))
    found = dict(zip(shard["column_names"], shard["column_encodings"], strict=True))
    assert found == {"b": "json", "f": "float64", "i": "int", "l": "json", "t": "str"}
    assert index_of(exported(tmp_path, [])) == []


def test_shards_end_before_the_most_bytes(tmp_path):
    records = [{"text": "x" * 100}] * 10
    folder = exported(tmp_path, records, columns={"text": "str"}, shard_bytes=600)
    shards = index_of(folder)
    assert [shard["samples"] for shard in shards] == [3, 3, 3, 1]
    assert all(shard["raw_data"]["bytes"] <= 600 for shard in shards)


def test_compressed_shards_hold_the_plain_ones(tmp_path):
    plain = index_of(exported(tmp_path / "a", columns=COLUMNS, compression=None))[0]["raw_data"]
    folder = exported(tmp_path / "b", columns=COLUMNS, compression="zstd", digests=["xxh64"])
    (shard,) = index_of(folder)
    packed = (folder / "shard.00000.mds.zstd").read_bytes()
    assert shard["zip_data"]["bytes"] == len(packed)
    assert set(shard["zip_data"]["hashes"]) == {"xxh64"}
    found = zstandard.ZstdDecompressor().decompress(packed)
    assert len(found) == shard["raw_data"]["bytes"]
    assert abs(len(found) - plain["bytes"]) < 20  # other texts in the description


def test_equal_records_give_equal_bytes(tmp_path):
    first, second = (exported(tmp_path / name, columns=COLUMNS) for name in "ab")
    assert (first / "shard.00000.mds").read_bytes() == (second / "shard.00000.mds").read_bytes()


@pytest.mark.parametrize(
    ("encoding", "value"),
    [
        ("str", 1),
        ("str", None),
        ("int", 1.0),
        ("int", True),
        ("int", None),
        ("uint8", 256),
        ("float32", 1e300),
        ("float64", "1"),
        ("bytes", "no base64!"),
        ("bytes", [1]),
        ("ndarray:int32", []),
        ("ndarray:int32", "text"),
        ("ndarray:int32", [1, 2.5]),
        ("ndarray:int32", [1 << 31]),
        ("ndarray:int32", [[1, 2], [3]]),
        ("ndarray:int32", [[1, 2], 3]),
        ("ndarray:int32", [[], []]),
        ("ndarray:int32:3", [1, 2]),
        ("ndarray", [1, "a"]),
        ("ndarray", [None]),
    ],
)
def test_what_an_encoding_cannot_hold_keeps_the_earlier_export(tmp_path, encoding, value):
    exported(tmp_path, [{"a": 1}])
    with pytest.raises(ExportError, match=r"line 1\), column 'a': it holds"):
        exported(tmp_path, [{"a": value}], columns={"a": encoding})
    assert index_of(tmp_path / "corpus")[0]["samples"] == 1


@pytest.mark.parametrize(
    "options",
    [
        {"columns": {"a": "pkl"}},
        {"columns": {"a": "ndarray:int33"}},
        {"columns": {"a": "ndarray:int32:0"}},
        {"columns": {"a": "str:1"}},
        {"columns": {"a": 1}},
        {"columns": {}},
        {"columns": ["a"]},
        {"shard_bytes": 1 << 32},
        {"columns": {"a": "ndarray:"}},
        {"columns": {"a": "ndarray::5"}},
        {"columns": {"a": "ndarray:int32:"}},
        {"digests": ["sha0"]},
        {"digests": ["shake_128"]},
        {"compression": "gz"},
    ],
)
def test_other_options_are_refused(options):
    with pytest.raises(DefinitionError):
        data.export.MDS("x", **options)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the reader: it leaves files open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_the_readers_of_mosaicml_give_the_records(tmp_path, compression):
    reason = "mosaicml-streaming and torch are not installed; they are no part of any extra"
    streaming = pytest.importorskip("streaming", reason=reason)
    options = {"shard_bytes": 8000, "compression": compression, "digests": ["sha1", "xxh64"]}
    folder = exported(tmp_path, columns=COLUMNS, **options)
    assert len(index_of(folder)) > 3

    streams = streaming.StreamingDataset(
        local=str(folder), remote=None, validate_hash="sha1", batch_size=1
    )
    readers = [streams] if compression else [streams, streaming.LocalDataset(str(folder))]
    for reader in readers:
        assert len(reader) == len(RECORDS)
        for at, record in enumerate(RECORDS):
            found = reader[at]
            assert found["ids"].tolist() == record["ids"]
            assert found["fixed"].tolist() == record["fixed"]
            assert found["free"].tolist() == record["free"]
            assert found["data"] == base64.b64decode(record["data"])
            plain = ("text", "n", "x", "y", "small", "meta")
            assert {key: found[key] for key in plain} == {key: record[key] for key in plain}


def test_the_writer_of_mosaicml_writes_the_same_bytes(tmp_path):
    reason = "mosaicml-streaming and torch are not installed; they are no part of any extra"
    streaming = pytest.importorskip("streaming", reason=reason)
    columns = {"text": "str", "n": "int", "meta": "json", "x": "float64"}
    for limit in (1 << 26, 1000, 300, 100):
        with streaming.MDSWriter(
            out=str(tmp_path / f"theirs{limit}"), columns=columns, size_limit=limit, hashes=["sha1"]
        ) as writer:
            for record in RECORDS:
                writer.write({key: record[key] for key in columns})
        ours = exported(tmp_path / f"{limit}", columns=columns, shard_bytes=limit)
        theirs = tmp_path / f"theirs{limit}"
        names = names_in(theirs)
        assert names_in(ours)[1:] == names
        assert all((ours / name).read_bytes() == (theirs / name).read_bytes() for name in names)
