"""The functions of `dagster_dataops.text` that split and convert texts."""

import pickle
import sys

import pytest

from dagster_dataops import errors, read_sequence
from dagster_dataops.errors import StreamDefinitionError, UnfitRecordError
from dagster_dataops.text import StrSplitter, StrToIntConverter, StrToTensorConverter
from tests.each import each


@each(
    "case",
    [
        ({}, "a\t\tb ", ["a", "", "b "]),
        ({}, "", [""]),
        ({"sep": ","}, "a,b", ["a", "b"]),
        ({"sep": "||"}, "a||b|c", ["a", "b|c"]),
        ({"names": ["x", "y"]}, "a\tb", {"x": "a", "y": "b"}),
        ({"indices": 1}, "a\tb", "b"),
        ({"indices": 0}, "a", "a"),
        ({"indices": [1]}, "a\tb", ["b"]),
        ({"indices": [2, 0]}, "a\tb\tc\td", ["a", "c"]),
        ({"indices": []}, "a\tb", ["a", "b"]),
        ({"indices": 1, "exclude": True}, "a\tb\tc", ["a", "c"]),
        ({"indices": [0, 1], "exclude": True}, "a\tb\tc", ["c"]),
        ({"indices": [0, 2], "names": ["x", "y"]}, "a\tb\tc", {"x": "a", "y": "c"}),
        ({"indices": [0], "names": ["x", "y"], "exclude": True}, "a\tb\tc", {"x": "b", "y": "c"}),
    ],
)
def test_a_text_is_split(case):
    options, text, wanted = case
    splitter = StrSplitter(**options)
    assert splitter(text) == wanted
    assert pickle.loads(pickle.dumps(splitter))(text) == wanted


@each(
    "case",
    [
        ({"indices": [1, 5]}, "a\tb", "the text has 2 fields, and 6 fields are needed: 'a"),
        ({"indices": [5], "exclude": True}, "a\tb", "6 fields are needed"),
        ({"names": ["x"]}, "a\tb", "got 2 fields for 1 name"),
        ({}, None, "StrSplitter takes a text, not a NoneType"),
        ({}, b"a", "takes a text, not a bytes"),
    ],
)
def test_a_text_that_does_not_fit_is_refused(case):
    options, text, message = case
    with pytest.raises(UnfitRecordError, match=message):
        StrSplitter(**options)(text)


@each(
    "case",
    [
        ({"names": ["a", "b"], "indices": [1, 2, 3]}, "got 2 names and 3 indices"),
        ({"names": ["a", "b"], "indices": [2, 0]}, "with names they must ascend"),
        ({"indices": [1, 1]}, "has a number twice"),
        ({"indices": -1}, "an index is -1"),
        ({"sep": ""}, "sep is ''"),
        ({"names": "ab"}, "names is 'ab'; it must be a list of texts"),
    ],
)
def test_options_that_do_not_fit_are_refused(case):
    options, message = case
    with pytest.raises(StreamDefinitionError, match=message):
        StrSplitter(**options)


def test_integers_have_64_bits():
    convert = StrToIntConverter()
    for value in (0, 7, -34, 2**63 - 1, -(2**63)):
        assert convert(str(value)) == value
    assert convert("+5") == 5
    assert StrToIntConverter(base=8)("034") == 28
    assert StrToIntConverter(base=16)("-fF") == -255
    for text in ("", "x", "1x", "1 2", " 1", "1_0", "1.0", "٣", str(2**63), "9" * 10_000):
        with pytest.raises(UnfitRecordError, match="must be an integer of 64 bits in base 10"):
            convert(text)
    with pytest.raises(UnfitRecordError, match="takes a text, not a int"):
        convert(3)
    for base in (1, 37):
        with pytest.raises(StreamDefinitionError, match=f"base is {base}"):
            StrToIntConverter(base)


def test_they_are_functions_of_map():
    rows = read_sequence(["a\t1", "b\t2"]).map(StrSplitter(names=["text", "n"]))
    found = rows.map(StrToIntConverter(), selector="n")
    assert list(found) == [{"text": "a", "n": 1}, {"text": "b", "n": 2}]


def test_the_extra_is_named_without_torch(monkeypatch):
    monkeypatch.delitem(sys.modules, "dagster_dataops.streams.torch_transfer", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(errors.MissingExtraError, match=r"dagster-dataops\[torch\]"):
        StrToTensorConverter()


def test_tensors_have_the_type_and_the_shape():
    torch = pytest.importorskip("torch")
    for kind in (None, torch.int16, torch.int64, torch.uint8):
        found = StrToTensorConverter(dtype=kind)("23 9  12 ")
        assert found.tolist() == [23, 9, 12]
        assert found.dtype == (kind or torch.int32)
    assert StrToTensorConverter(size=(-1, 2))("1 2 3 4").tolist() == [[1, 2], [3, 4]]
    assert StrToTensorConverter()("").shape == (0,)
    with pytest.raises(UnfitRecordError, match=r"element 1 is '300', no integer .* torch.uint8"):
        StrToTensorConverter(dtype=torch.uint8)("1 300")
    with pytest.raises(StreamDefinitionError, match="must be an integer type"):
        StrToTensorConverter(dtype=torch.half)
    with pytest.raises(RuntimeError, match="invalid"):
        StrToTensorConverter(size=(5, 2))("1 2 3")
