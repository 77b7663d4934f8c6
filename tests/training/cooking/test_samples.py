"""Tests of dagster_dataops.training.cooking.samples."""

import dataclasses
import pickle
from dataclasses import field

import pytest

from dagster_dataops import (
    Sample,
    SourceInfo,
    TextSample,
    basic_sample_keys,
    edataclass,
    file_store,
)
from dagster_dataops.records import encode
from tests.each import each

CRUDE = {
    "__key__": "k",
    "__restore_key__": ["d", "s", "k"],
    "__shard__": "s",
    "__subflavors__": {"a": 1},
    "__sources__": [SourceInfo.of("d", 0, "s", ["k.txt"])],
    "txt": b"hello",
}


@edataclass
class Pair(Sample):
    first: str
    second: int = 2
    third: list = field(default_factory=list)


def test_a_sample_is_a_dict_whose_fields_are_attributes():
    sample = Pair(**basic_sample_keys(CRUDE), first="x")
    sample.second = 5
    assert (sample.first, sample["second"], sample.third) == ("x", 5, [])
    assert sample["__key__"] == "k"
    assert "__shard__" not in sample
    assert encode(Pair(first="x")) == b'{"first":"x","second":2,"third":[]}\n'
    copied = pickle.loads(pickle.dumps(sample))
    assert type(copied) is Pair
    assert copied == sample
    assert repr(Pair(first="x")) == "Pair(first='x', second=2, third=[])"


def test_an_unknown_or_missing_field_is_refused():
    with pytest.raises(TypeError, match=r"no field 'firstly'; did you mean 'first'\?"):
        Pair(firstly="x")
    with pytest.raises(TypeError, match=r"no field '~'\. Its fields: first"):
        Pair(**{"~": "x"})
    with pytest.raises(TypeError, match="no value for its field 'first'"):
        Pair()
    with pytest.raises(AttributeError, match="no field 'fourth'"):
        Pair(first="x").fourth = 1
    with pytest.raises(AttributeError):
        _ = Pair(first="x").fourth


class Shouting:
    loud = True


@each("name", ["values", "items", "keys", "copy", "get", "update", "derive_from", "loud"])
def test_a_field_that_an_attribute_of_the_class_would_hide_is_refused(name):
    annotations = {"__annotations__": {name: list}}
    with pytest.raises(TypeError, match=f"declares the field '{name}', .* another name"):
        type("Hidden", (Shouting, TextSample), {"__module__": __name__, **annotations})
    plain = type("Hidden", (Shouting,), {"__module__": __name__, **annotations})
    with pytest.raises(TypeError, match=f"declares the field '{name}', .* another name"):
        edataclass(plain)


def test_a_subclass_may_declare_a_field_of_its_base_again():
    class Stricter(Pair):
        second: int = 3

    assert Stricter(first="x").second == 3


def test_the_fields_of_a_class_are_described_once():
    class Longer(Pair):
        fourth: int = 4

    assert dataclasses.fields(Longer)[-1] is dataclasses.fields(Longer(first="x"))[-1]
    assert [one.name for one in dataclasses.fields(Pair)][4:] == ["first", "second", "third"]


def test_a_derived_sample_keeps_the_keys_of_its_base():
    base = TextSample(**basic_sample_keys(CRUDE), text="x")
    derived = Pair.derive_from(base, first="y")
    assert (derived["__key__"], derived.first) == ("k", "y")
    assert "text" not in derived


def test_fields_are_inherited_and_plain_classes_become_samples():
    class More(Pair):
        fourth: str = "f"

    @edataclass
    class Plain:
        text: str

        def shout(self):
            return self.text.upper()

    assert More(first="a").fourth == "f"
    assert list(More.field_types()) == ["first", "second", "third", "fourth"]
    assert Plain(text="a").shout() == "A"
    assert isinstance(Plain(text="a"), Sample)


def test_sources_are_added_to_a_copy(tmp_path):
    more = SourceInfo.of("aux", "x.txt", "s", ["x.txt"])
    kept = basic_sample_keys(CRUDE, [more])
    assert kept["__sources__"] == [*CRUDE["__sources__"], more]
    assert len(CRUDE["__sources__"]) == 1
    sample = TextSample(**basic_sample_keys(CRUDE), text="x")
    (tmp_path / "x.txt").write_text("x")
    file_store(tmp_path).get("x.txt", sample)
    assert len(sample["__sources__"]) == 2
    assert len(CRUDE["__sources__"]) == 1


@edataclass
class LongTextSample(TextSample):
    length: int


def test_a_sample_is_extended_by_further_fields():
    sample = TextSample(__key__="a", text="x")
    assert LongTextSample.extend(sample, length=1) == {"__key__": "a", "text": "x", "length": 1}
    assert LongTextSample.extend(sample, length=1, text="y").text == "y"


def test_the_functions_of_dataclasses_take_samples():
    sample = LongTextSample(__key__="a", text="x", length=1)
    keys = ["__key__", "__restore_key__", "__subflavors__", "__sources__"]
    assert [one.name for one in dataclasses.fields(sample)] == [*keys, "text", "length"]
    assert dataclasses.replace(sample, text="y").text == "y"
    assert dataclasses.asdict(sample)["length"] == 1
    assert sample.__sources__ is None
