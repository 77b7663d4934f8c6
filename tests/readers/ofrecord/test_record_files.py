"""``readers.read_ofrecord`` and `readers.OFRecordReader`."""

import gzip
import json
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import data_register, readers
from dagster_dataops.errors import (
    MissingExtraError,
    OperatorOptionError,
    StreamArgumentError,
    StreamSourceError,
)
from dagster_dataops.readers.ofrecord import record_frames
from dagster_dataops.readers.ofrecord.record_messages import features_of, record_class
from dagster_dataops.testing import assert_resumes_anywhere
from tests.each import each
from tests.readers.ofrecord.ofrecord_writing import field, frame, payload, varint, written


def numbered(number, size=0):
    return payload(n=("int32", [number]), text=("bytes", [b"x" * size]))


@pytest.fixture
def parts(tmp_path):
    for part in range(3):
        payloads = [numbered(10 * part + at, size=at * 30) for at in range(6)]
        written(tmp_path / f"part-{part}", payloads)
    return tmp_path


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(record_frames, "BLOCK_BYTES", 100)


def numbers(stream):
    return [one["n"][0] if isinstance(one["n"], list) else one["n"] for one in stream]


ALL = [10 * part + at for part in range(3) for at in range(6)]


def test_records_are_read_with_their_features(parts):
    (first, *_) = readers.read_ofrecord(parts / "part-0")
    assert first == {"n": [0], "text": [b""]}
    assert numbers(readers.read_ofrecord(parts)) == ALL
    assert numbers(readers.read_ofrecord(str(parts / "part-*"))) == ALL


@each("size", [100, 64, 20_000])
def test_it_resumes_anywhere(parts, monkeypatch, size):
    monkeypatch.setattr(record_frames, "BLOCK_BYTES", size)
    assert numbers(readers.read_ofrecord(parts)) == ALL
    assert_resumes_anywhere(lambda: readers.read_ofrecord(parts))
    assert_resumes_anywhere(lambda: readers.read_ofrecord(parts).shuffle(4, seed=1))


def test_a_state_is_loaded_with_other_blocks(parts, monkeypatch):
    stream = readers.read_ofrecord(parts).and_return()
    items = iter(stream)
    for _ in range(9):
        next(items)
    state = json.loads(json.dumps(stream.state_dict()))
    monkeypatch.setattr(record_frames, "BLOCK_BYTES", 50)
    again = readers.read_ofrecord(parts).and_return()
    again.load_state_dict(state)
    assert numbers(again) == ALL[9:]


def test_decoders_choose_the_columns(parts):
    decoders = {"n": lambda features: features["n"][0], "size": lambda f: len(f["text"][0])}
    assert list(readers.read_ofrecord(parts / "part-1", decoders))[:2] == [
        {"n": 10, "size": 0},
        {"n": 11, "size": 30},
    ]
    with pytest.raises(StreamArgumentError, match="a decoder is a str"):
        readers.read_ofrecord(parts, {"n": "n"})


def test_compressed_files_are_read(tmp_path, small_blocks):
    content = b"".join(frame(numbered(at, 40)) for at in range(9))
    (tmp_path / "part-0.gz").write_bytes(gzip.compress(content))
    assert numbers(readers.read_ofrecord(tmp_path)) == list(range(9))
    (tmp_path / "part-0.gz").write_bytes(gzip.compress(content)[:-12])
    with pytest.raises(StreamSourceError, match=r"part-0\.gz"):
        list(readers.read_ofrecord(tmp_path))


def damaged(path, kind):
    data = path.read_bytes()
    second = len(frame(numbered(0)))
    match kind:
        case "in a payload":
            path.write_bytes(data[:-3])
        case "in a length":
            path.write_bytes(data + b"\x01\x00\x00")
        case "negative":
            path.write_bytes(data[:second] + b"\xff" * 8 + data[second + 8 :])
        case "too large":
            path.write_bytes(data[:second] + b"\xff" * 7 + b"\x7f" + data[second + 8 :])
        case "of another file":
            path.write_bytes(b"This is a text, and no OFRecord file.\n")


@each(
    "case",
    [
        ("in a payload", r"part-0: is truncated: at byte 380 begins a record with 1\d\d bytes", 5),
        ("in a length", r"is truncated: at byte \d+ begins a record with 8 bytes of length", 6),
        ("negative", r"has a record of -1 bytes at byte \d\d; a length is from 0 to", 1),
        ("too large", "has a record of 9,223,372,036,854,775,807 bytes at byte", 1),
        ("of another file", "bytes at byte 0; .* is no OFRecord file", 0),
    ],
)
def test_a_damaged_file_is_named_with_the_byte(tmp_path, case):
    kind, message, read = case
    folder = tmp_path / kind
    path = written(folder / "part-0", [numbered(at, size=at * 30) for at in range(6)])
    written(folder / "part-1", [numbered(10)])
    damaged(path, kind)
    stream = readers.read_ofrecord(folder).and_return()
    with pytest.raises(StreamSourceError, match=message.replace("380", r"\d+")):
        list(stream)
    skipping = readers.read_ofrecord(folder).and_return(on_error="quarantine")
    assert numbers(skipping) == [*range(read), 10]
    assert skipping.errors == 1
    resumed = readers.read_ofrecord(folder).and_return(on_error="quarantine")
    resumed.load_state_dict(skipping.state_dict())
    assert (list(resumed), resumed.errors) == ([], 1)


def test_a_damaged_payload_is_a_failed_item_with_its_byte(tmp_path):
    good = numbered(1)
    path = written(tmp_path / "part-0", [good, b"\x0a\x7f", good])
    message = rf"part-0, record at byte {len(frame(good))}: is damaged, or is no OFRecord"
    with pytest.raises(StreamSourceError, match=message):
        list(readers.read_ofrecord(path))
    stream = readers.read_ofrecord(path).and_return(on_error="skip")
    assert numbers(stream) == [1, 1]

    failing = readers.read_ofrecord(path, {"m": lambda features: features["m"]})
    with pytest.raises(StreamSourceError, match=r"record at byte 0: KeyError: 'm'"):
        list(failing)


def test_an_empty_file_and_an_empty_record_are_read(tmp_path):
    written(tmp_path / "part-0", [])
    written(tmp_path / "part-1", [b""])
    assert list(readers.read_ofrecord(tmp_path)) == [{}]


# ---------------------------------------------------------------- numbered parts


class Numbers(readers.OFRecordReader):
    def parse(self, features):
        return {"n": features["n"][0]}


def test_parts_are_read_by_their_numbers(parts):
    assert numbers(readers.OFRecordReader(parts, 3).stream()) == ALL
    assert numbers(Numbers(parts, 2).stream()) == ALL[:12]
    batches = list(Numbers(parts, 3, batch_size=4, drop_last=True).stream())
    assert batches[1] == {"n": [4, 5, 10, 11]}
    with pytest.raises(StreamSourceError, match="1 of 4 parts are missing: part-3"):
        list(Numbers(parts, 4).stream())


def test_epochs_are_shuffled_and_resume_anywhere(parts, small_blocks):
    def stream():
        options = {"random_shuffle": True, "shuffle_buffer_size": 5, "shuffle_after_epoch": True}
        return Numbers(parts, 3, epochs=2, seed=3, **options).stream()

    found = numbers(stream())
    assert sorted(found) == sorted(ALL * 2)
    assert found[:18] != found[18:]
    assert_resumes_anywhere(stream)


def test_shards_share_the_parts(parts):
    found = [numbers(Numbers(parts, 3, shard_index=at, num_shards=2).stream()) for at in (0, 1)]
    assert [*found[0], *found[1]] == ALL


def test_the_place_of_a_record_is_its_file_and_number(parts):
    *_, last = Numbers(parts, 3, with_place=True).stream()
    assert last == {"n": 25, "file": "part-2", "line": 6}


def test_errors_of_a_part_name_file_record_and_byte(parts):
    class Failing(readers.OFRecordReader):
        def parse(self, features):
            raise ValueError("no label")

    with pytest.raises(StreamSourceError, match="part-0, record 1 at byte 0: no label"):
        list(Failing(parts, 3).stream())
    damaged(parts / "part-1", "in a payload")
    reader = Numbers(parts, 3)
    with pytest.raises(StreamSourceError, match="part-1: is truncated"):
        list(reader.stream())
    skipping = reader.stream().and_return(on_error="skip")
    assert numbers(skipping) == [*ALL[:11], *ALL[12:]]
    assert skipping.errors == 1


def test_a_registered_reader_is_an_operator(parts):
    @data_register("data.ofrecord_tests", columns={"n": int})
    class Registered(readers.OFRecordReader):
        def parse(self, features):
            return {"n": features["n"][0]}

    assert numbers(Registered(parts, data_part_num=3).stream()) == ALL
    with pytest.raises(OperatorOptionError, match="records are no lines"):
        Numbers(parts, 3, skip_blank_lines=True)
    assert readers.OFRecordReader is readers.OFRecordReader


def test_each_kind_of_list_is_read():
    data = payload(
        words=("bytes", [b"a", b"", bytes(range(256))]),
        halves=("float", [0.5, -1.0]),
        thirds=("double", [1 / 3]),
        small=("int32", [0, -1, 2**31 - 1, -(2**31)]),
        large=("int64", [2**63 - 1, -(2**63)]),
        none=("int32", []),
    )
    assert features_of(data) == {
        "halves": [0.5, -1.0],
        "large": [2**63 - 1, -(2**63)],
        "none": [],
        "small": [0, -1, 2**31 - 1, -(2**31)],
        "thirds": [1 / 3],
        "words": [b"a", b"", bytes(range(256))],
    }
    assert list(features_of(data)) == sorted(features_of(data))
    assert features_of(b"") == {}


def test_values_that_are_not_packed_and_unknown_fields_are_read():
    listed = b"".join(varint(1 << 3) + varint(number) for number in (1, 300))
    feature = field(4, listed) + field(9, b"unknown")
    data = field(1, field(1, b"n") + field(2, feature)) + varint(7 << 3) + varint(5)
    assert features_of(data) == {"n": [1, 300]}
    floats = b"".join(varint(1 << 3 | 5) + struct.pack("<f", one) for one in (1.0, 2.0))
    assert features_of(field(1, field(1, b"f") + field(2, field(2, floats)))) == {"f": [1.0, 2.0]}
    assert features_of(field(1, field(1, b"empty"))) == {"empty": []}


@each(
    "data",
    [
        b"\x0a",
        b"\x0a\x05abc",
        payload(a=("int32", [1]))[:-1],
        b"\xff" * 11,
        field(1, field(1, b"\xff\xfe") + field(2, b"")),
        field(1, field(1, b"f") + field(2, field(2, field(1, b"abc")))),
    ],
)
def test_damaged_bytes_are_refused(data):
    with pytest.raises(ValueError, match="is damaged, or is no OFRecord"):
        features_of(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    try:
        found = features_of(data)
    except ValueError:
        return
    assert all(isinstance(one, list) for one in found.values())


def test_the_extra_is_named_without_protobuf(monkeypatch):
    record_class.cache_clear()
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(MissingExtraError, match=r"dagster-dataops\[ofrecord\]"):
        record_class()
