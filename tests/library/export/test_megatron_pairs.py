"""Tests of ``export.Megatron``: the bytes of the format, and what Megatron's own reader gives."""

import struct
from pathlib import Path

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, ExportError
from tests.datasets.exporters.folders import names_in

DOCUMENTS = [[1, 2, 3], [], [60_000, 5], [7]]
RECORDS = [{"input_ids": ids, "labels": [-100, *ids[1:]] if ids else []} for ids in DOCUMENTS]


def exported(place: Path, records=RECORDS, **options) -> Path:
    data.export.Megatron(place / "corpus" / "train", **options)(records)
    return place / "corpus"


def pair(prefix: Path, kind: str) -> tuple[list[list[int]], list[int]]:
    """Read the sequences and the ends of documents of a pair, by the description of the format."""
    codes = {1: "B", 2: "b", 3: "h", 4: "i", 5: "q", 8: "H"}
    index, content = (
        prefix.with_suffix(".idx").read_bytes(),
        prefix.with_suffix(".bin").read_bytes(),
    )
    assert index[:9] == b"MMIDIDX\0\0"
    version, code, count, ends = struct.unpack_from("<QBQQ", index, 9)
    assert (version, codes[code]) == (1, kind)
    lengths = struct.unpack_from(f"<{count}i", index, 34)
    places = struct.unpack_from(f"<{count}q", index, 34 + 4 * count)
    assert len(index) == 34 + 12 * count + 8 * ends
    sequences = [
        list(struct.unpack_from(f"<{length}{kind}", content, place))
        for length, place in zip(lengths, places, strict=True)
    ]
    assert len(content) == sum(lengths) * struct.calcsize(kind)
    return sequences, list(struct.unpack_from(f"<{ends}q", index, 34 + 12 * count))


@pytest.mark.parametrize(("dtype", "code"), [("int32", "i"), ("uint16", "H"), ("int64", "q")])
def test_each_record_is_a_document(tmp_path, dtype, code):
    folder = exported(tmp_path, dtype=dtype)

    assert names_in(folder) == [".dataops_export", "train.bin", "train.idx"]
    assert pair(folder / "train", code) == (DOCUMENTS, [0, 1, 2, 3, 4])


def test_packed_sequences_are_those_of_one_document_with_a_mask_of_their_labels(tmp_path):
    records = [
        {"input_ids": [1, 2, 3, 4, 5], "labels": [-100, 2, 3, -100, 5], "seq_lengths": [3, 2]},
        {"input_ids": [6], "labels": [6], "seq_lengths": [1]},
    ]
    options = {"lengths_key": "seq_lengths", "label_key": "labels", "end_id": 9}
    folder = exported(tmp_path, records, **options)

    assert pair(folder / "train", "i") == ([[1, 2, 3], [4, 5, 9], [6, 9]], [0, 2, 3])
    masks = [[0, 1, 1], [0, 1, 1], [1, 1]]
    assert pair(folder / "train_loss_mask", "B") == (masks, [0, 2, 3])


def test_empty_documents_can_be_left_out_and_no_records_make_an_empty_pair(tmp_path):
    folder = exported(tmp_path, drop_empty=True)
    assert pair(folder / "train", "i") == ([ids for ids in DOCUMENTS if ids], [0, 1, 2, 3])
    assert pair(exported(tmp_path, []) / "train", "i") == ([], [0])


def test_pairs_end_before_the_most_bytes(tmp_path):
    folder = exported(tmp_path, shard_bytes=16)
    assert names_in(folder)[1:] == [
        f"train_{n:05d}.{end}" for n in (0, 1) for end in ("bin", "idx")
    ]
    assert pair(folder / "train_00000", "i")[0] == DOCUMENTS[:2]
    assert pair(folder / "train_00001", "i")[0] == DOCUMENTS[2:]
    parts = exported(tmp_path, shard_bytes=1)
    found = [pair(path.with_suffix(""), "i")[0] for path in sorted(parts.glob("*.bin"))]
    assert [one for part in found for one in part] == DOCUMENTS


def test_a_long_index_is_written_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("dagster_dataops.library.export.megatron_pairs._COPIED", 3)
    for count in (2, 3, 6, 7):
        records = [{"input_ids": [n] * (n % 3)} for n in range(count)]
        found = pair(exported(tmp_path, records) / "train", "i")
        assert found == ([one["input_ids"] for one in records], list(range(count + 1)))


@pytest.mark.parametrize(
    ("record", "options", "message"),
    [
        ({"input_ids": [1, 70_000]}, {"dtype": "uint16"}, "70000, which uint16 cannot hold"),
        ({"input_ids": [-1]}, {"dtype": "uint16"}, "-1, which uint16 cannot hold"),
        ({"input_ids": [1.5]}, {}, "1.5 in a list of int32"),
        ({"input_ids": [True]}, {}, "True in a list of int32"),
        ({"input_ids": [[1]]}, {}, "in a list of int32"),
        ({"input_ids": "text"}, {}, "no list of integers"),
        ({"input_ids": [1], "n": [2]}, {"lengths_key": "n"}, "has 1 ids"),
        ({"input_ids": [1], "n": []}, {"lengths_key": "n"}, "has 1 ids"),
        ({"input_ids": [1], "n": [True]}, {"lengths_key": "n"}, "has 1 ids"),
        ({"input_ids": [1], "l": [1, 2]}, {"label_key": "l"}, "2 labels"),
        ({"input_ids": [1], "l": ["x"]}, {"label_key": "l"}, "no integers"),
        ({"input_ids": [1], "l": "x"}, {"label_key": "l"}, "no list"),
    ],
)
def test_what_the_format_cannot_hold_keeps_the_earlier_export(tmp_path, record, options, message):
    exported(tmp_path)
    with pytest.raises(ExportError, match=message) as caught:
        exported(tmp_path, [{"input_ids": [1], "n": [1], "l": [1]}, record], **options)
    assert "line 2" in str(caught.value)
    assert pair(tmp_path / "corpus" / "train", "i")[0] == DOCUMENTS
    assert names_in(tmp_path) == ["corpus", "results"]


@pytest.mark.parametrize("path", ["train", "corpus/train.bin", "a/{partition}"])
def test_other_paths_are_refused(path):
    with pytest.raises(DefinitionError, match="path is"):
        data.export.Megatron(path)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "int64"])
def test_the_reader_of_megatron_gives_the_sequences(tmp_path, dtype):
    reason = "megatron-core and torch are not installed; they are no part of any extra"
    module = pytest.importorskip("megatron.core.datasets.indexed_dataset", reason=reason)
    documents = [[n % 100 for n in range(size)] for size in (3, 0, 5, 1)]
    folder = exported(tmp_path, [{"input_ids": ids} for ids in documents], dtype=dtype)

    found = module.IndexedDataset(str(folder / "train"))
    assert [found[at].tolist() for at in range(len(found))] == documents
    assert found.document_indices.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["Megatron", "LitData"])
def test_an_end_that_the_type_cannot_hold_is_refused(name):
    with pytest.raises(DefinitionError, match="end_id is 70000, which dtype='uint16'"):
        getattr(data.export, name)("a/b", dtype="uint16", end_id=70_000)
