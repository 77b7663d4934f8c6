"""Every operator of the library refuses options of a wrong type before it reads a record."""

import functools
import math
from operator import or_
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest

from dagster_dataops import data, data_register
from dagster_dataops.errors import DefinitionError, OperatorOptionError
from tests.each import each
from tests.library.all_operators import GROUPS
from tests.nodes import ArtefactReference

NAMES = [f"{group}.{name}" for group in sorted(GROUPS) for name in data_register.operators(group)]
NUMBERS = (int, float, int | None, float | None)
ANYTHING = ArtefactReference("a")  # of every type until the run


def operator(name: str) -> Any:
    return data_register.operator(*name.split("."))


def without_range(annotation: Any) -> Any:
    """Return a type without the metadata of ``Annotated``, also of the members of a union."""
    members = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return without_range(members[0])
    if get_origin(annotation) in (Union, UnionType):
        return functools.reduce(or_, map(without_range, members))
    return annotation


def options(name: str) -> list[Any]:
    found = operator(name).__dataops_spec__.options
    return [one for one in found if Any not in [one.annotation, *get_args(one.annotation)[:1]]]


def required_but(name: str, option: str) -> dict[str, Any]:
    found = operator(name).__dataops_spec__.options
    return {one.name: ANYTHING for one in found if one.required and one.name != option}


@each("name", NAMES)
def test_a_value_of_no_type_is_refused_by_the_name_of_its_option(name: str) -> None:
    for option in options(name):
        with pytest.raises(OperatorOptionError, match="must be .*; got object") as refused:
            operator(name)(**required_but(name, option.name), **{option.name: object()})
        assert (refused.value.operator, refused.value.option) == (name, option.name)


@each("name", NAMES)
def test_a_number_has_a_range_and_is_refused_outside(name: str) -> None:
    without = {"seed", "end_id", "pad_id", "min_score"}  # any number means something
    for option in operator(name).__dataops_spec__.options:
        if without_range(option.annotation) not in NUMBERS or option.name in without:
            continue
        given = {**required_but(name, option.name), option.name: -(10**12)}
        with pytest.raises(OperatorOptionError, match="must be (at least|above|between) .*; got -"):
            operator(name)(**given)


@pytest.mark.parametrize("value", [math.nan, "0.1", None, True, [0.1]])
def test_a_share_is_a_number(value: Any) -> None:
    with pytest.raises(OperatorOptionError, match=r"sample.Rate: option 'ratio' must be float"):
        data.sample.Rate(ratio=value)


def test_a_word_is_no_list_of_words() -> None:
    with pytest.raises(OperatorOptionError, match="FlaggedWords: option 'words' must be .*'bad'"):
        data.filters.FlaggedWords(words="bad")


@pytest.mark.parametrize("words", [["bad"], ("bad",), {"bad"}, frozenset({"bad"})])
def test_words_are_any_collection(words: Any) -> None:
    kept = data.filters.FlaggedWords(words=words)([{"text": "bad"}, {"text": "good"}])

    assert kept == [{"text": "good"}]


def test_words_are_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("bad\n")

    assert data.filters.Blocklist(words=path)([{"text": "bad"}]) == []


def test_keys_may_be_a_tuple() -> None:
    records = [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 1}]

    assert data.dedup.Exact(input_key=("a", "b"))(records) == records[:2]


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("dedup.Exact", {"input_key": []}, r"input_key is \[\]; name at least one column"),
        ("decontaminate.NGrams", {"benchmark": "no.jsonl"}, "benchmark is 'no.jsonl', which"),
        ("filters.Url", {"domains": "no.txt"}, "domains is 'no.txt', which cannot be read"),
        ("join.Lookup", {"table": "no.jsonl", "on": "id"}, "table is 'no.jsonl', which"),
        ("join.Merge", {"on": "id", "right_on": []}, r"right_on is \[\]"),
        ("join.Merge", {"on": "id", "right_on": ["a", "b"]}, "give as many columns"),
        ("llm.Judge", {"rubric": "good?", "scale": [1]}, r"'scale' is \[1\]; give the lowest"),
        ("sample.Split", {"ratios": {}}, "'ratios' must have shares by 2 to 64"),
        ("sample.TopK", {"sort_key": "a", "count": -1}, "'count' must be at least 0"),
        (
            "stats.Threshold",
            {"key": "a", "sigma": -1},
            "'sigma' must be at least 0, or None",
        ),
        ("text.Chunk", {"max_chars": 0}, "'max_chars' must be at least 1"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_the_operator(
    name: str, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(DefinitionError, match=f"Operator {name}: .*{said}"):
        operator(name)(**given)
