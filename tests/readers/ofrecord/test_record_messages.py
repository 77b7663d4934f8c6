"""The values in the bytes of an OFRecord."""

import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.errors import MissingExtraError
from dagster_dataops.readers.ofrecord.record_messages import features_of, record_class
from tests.each import each
from tests.readers.ofrecord.ofrecord_writing import field, payload, varint


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
