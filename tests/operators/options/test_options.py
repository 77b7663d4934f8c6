"""Tests of options: signatures, docstrings, types, ranges, artefacts, former names."""

import inspect
import math
import os
import pickle
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, List, Literal, Protocol, TypeVar  # noqa: UP035 - as users of the reference write it

import pytest
from annotated_types import Gt, Interval, Le, Lt
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.datasets.artefact import Artefact
from dagster_dataops.errors import OperatorDefinitionError, OperatorOptionError
from dagster_dataops.operators.chains.chain import Part, chain_of
from dagster_dataops.operators.options.annotations import check_pairs, plain_type, range_missed
from dagster_dataops.operators.options.artefact_options import (
    NodeReference,
    as_option,
    referenced,
    with_references,
)
from dagster_dataops.operators.options.docstrings import (
    described_parameters,
    first_sentence,
    option_descriptions,
    without_rst,
)
from dagster_dataops.operators.options.ranges import AtLeastZero, Fraction, Percentile, PositiveInt
from dagster_dataops.operators.options.signature import (
    bind_options,
    count_inputs,
    options_of,
    parameters_of,
    takes_any,
    wants_iterator,
)
from dagster_dataops.operators.options.type_checks import matches_type
from tests.nodes import ArtefactReference, ExecutionSettings
from tests.registries import OperatorRegistry
from tests.sent_operators import receive, ship


def names(function) -> list[str]:
    return [option.name for option in options_of(parameters_of(function), set())]


def inputs(function, *, dataset: bool) -> int:
    return count_inputs(parameters_of(function), dataset=dataset)


def bind(function, given: dict) -> dict:
    parameters = parameters_of(function)
    options = options_of(parameters[1:], set())
    return bind_options("demo.step", options, given, any_option=takes_any(parameters))


def sample(data, key, *, limit: int = 3, **more):
    return data, key, limit, more


def closed(data, key="text", output_key=None):
    return data, key, output_key


def test_options_are_the_parameters_that_can_be_given_by_keyword():
    def function(first, /, data, *rest, key=1, **more):
        return first, data, rest, key, more

    assert names(function) == ["data", "key"]


def test_annotations_written_as_text_are_resolved():
    def function(data: "list[dict]", rest: "Iterable[dict]"):
        return data, rest

    first, second = parameters_of(function)
    assert first.annotation == list[dict]
    assert wants_iterator(second)


def test_unresolvable_annotations_are_ignored():
    def function(data: "Nowhere", key: "AlsoNowhere" = 1):  # noqa: F821
        return data, key

    assert names(function) == ["data", "key"]


def test_a_record_operator_has_one_input():
    def function(data: dict, other: list, key=1):
        return data, other, key

    assert inputs(function, dataset=False) == 1


@pytest.mark.parametrize("annotation", [list, list[dict], List[dict], Iterable[dict]])  # noqa: UP006
def test_a_dataset_operator_joins_as_many_lists_as_it_starts_with(annotation):
    def function(left, right, key, third, limit=1):
        return left, right, key, third, limit

    function.__annotations__ = {"left": list, "right": annotation, "third": list}

    assert inputs(function, dataset=True) == 2


def test_a_parameter_with_a_default_is_an_option_not_an_input():
    def function(left: list, right: list = None):  # noqa: RUF013 - as users write it
        return left, right

    assert inputs(function, dataset=True) == 1


@pytest.mark.parametrize(
    ("annotation", "lazily"),
    [
        (Iterable[dict], True),
        (Iterator[dict], True),
        (Iterable, True),
        (list[dict], False),
        (Any, False),
    ],
)
def test_an_iterable_is_streamed_and_a_list_is_not(annotation, lazily):
    def function(data):
        return data

    function.__annotations__ = {"data": annotation}

    assert wants_iterator(parameters_of(function)[0]) is lazily


def test_options_are_bound_in_the_order_of_the_signature_with_their_defaults():
    assert list(bind(closed, {"output_key": "o"}).items()) == [("key", "text"), ("output_key", "o")]


def test_an_unknown_option_names_the_operator_the_option_and_the_nearest_known_one():
    with pytest.raises(OperatorOptionError) as caught:
        bind(closed, {"output_kye": "o"})

    assert caught.value.operator == "demo.step"
    assert caught.value.option == "output_kye"
    assert "did you mean 'output_key'?" in str(caught.value)
    assert "Its options: key, output_key" in str(caught.value)


def test_the_error_for_an_unknown_option_lists_the_options():
    with pytest.raises(OperatorOptionError, match=r"is unknown\. Its options: key, output_key"):
        bind(closed, {"zzzzz": 1})


def test_a_missing_option_is_named():
    with pytest.raises(OperatorOptionError, match="option 'key' is required and was not given"):
        bind(sample, {})


def test_further_options_are_taken_where_the_function_takes_any():
    assert bind(sample, {"key": "k", "extra": 1}) == {"key": "k", "limit": 3, "extra": 1}


@pytest.mark.parametrize(
    ("given", "meant"), [("text_fild", "text_field"), ("top_p", None), ("texts", None)]
)
def test_an_option_for_kwargs_that_looks_misspelt_is_logged(caplog, given, meant):
    def function(data, text_field="text", top_k=1, **more):
        return data, text_field, top_k, more

    assert bind(function, {given: 1})[given] == 1
    assert [record.levelname for record in caplog.records] == (["WARNING"] if meant else [])
    assert f"did you mean {meant!r}?" in caplog.text if meant else not caplog.text


def test_a_name_beside_a_similar_given_one_is_not_a_misspelling(caplog):
    def function(data, text_field="text", **more):
        return data, text_field, more

    bind(function, {"text_field": "a", "text_fields": "b"})

    assert not caplog.records


GOOGLE = """Cut texts.

    Args:
        size: Characters of a piece,
            at most.
        overlap (int): Characters that two share.

    Returns:
        The pieces.
    """
NUMPY = """Cut texts.

    Parameters
    ----------
    size : int
        Characters of a piece,
        at most.
    overlap : int, optional
        Characters that two share.

    Returns
    -------
    list
    """
REST = """Cut texts.

    :param size: Characters of a piece,
        at most.
    :param int overlap: Characters that two share.
    :returns: The pieces.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, REST], ids=["google", "numpy", "rest"])
def test_parameters_are_described_in_every_style(text):
    def cut(record, size, overlap):
        return record, size, overlap

    cut.__doc__ = text

    assert option_descriptions(cut) == {
        "size": "Characters of a piece,\nat most.",
        "overlap": "Characters that two share.",
    }


def test_numpy_describes_several_parameters_at_once():
    text = "Resize.\n\nParameters\n----------\nwidth, height : int\n    Pixels.\n"

    assert described_parameters(text) == {"width": "Pixels.", "height": "Pixels."}


def test_stars_and_backticks_belong_to_no_name():
    text = "Resize.\n\nArgs:\n    **options: More.\n    `size`: Pixels.\n"

    assert described_parameters(text) == {"options": "More.", "size": "Pixels."}


class Base:
    """A base.

    Args:
        a: By the base.
        b: By the base.
    """


class Derived(Base):
    """A derived class.

    Args:
        b: By the class.
        c: By the class.
    """

    def __init__(self, c):
        """Make one.

        Args:
            c: By the constructor.
        """

    def forward(self, d):
        """Go.

        Args:
            d: By forward.
        """


def test_a_class_is_described_by_its_own_docstring_before_those_of_its_bases():
    assert option_descriptions(Derived) == {
        "a": "By the base.",
        "b": "By the class.",
        "c": "By the constructor.",
        "d": "By forward.",
    }


def test_without_a_docstring_nothing_is_described():
    assert option_descriptions(lambda record: record) == {}


LINES = st.sampled_from(
    ["Args:", "  a: b", "    a (int)", ":param", ":param a:", "Parameters", "---", "a : int", ""]
)


@given(st.lists(LINES | st.text(max_size=12), max_size=9).map("\n".join))
def test_no_docstring_is_too_odd(text):
    assert all(isinstance(said, str) for said in described_parameters(text).values())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Reads ``text``.", "Reads `text`."),
        ("``a\nb`` and ``c``", "`a\nb` and `c`"),
        ("``a`b`` stays", "``a`b`` stays"),
        (":func:`other`, :py:class:`~a.b.Reader`", "`other`, `Reader`"),
        (":meth:`its form <a.b.form>`, :obj:`!name`", "`its form`, `name`"),
        (
            "see `here <https://a.org/b_c>`_ or `there <https://b.org>`__",
            "see [here](https://a.org/b_c) or [there](https://b.org)",
        ),
        ("```python\nx = '``y``'\n```\n``z``", "```python\nx = '``y``'\n```\n`z`"),
        ("`a` and a_b, 10:30 and :-)", "`a` and a_b, 10:30 and :-)"),
    ],
)
def test_marks_of_rst_become_those_of_markdown(text: str, shown: str) -> None:
    assert without_rst(text) == shown


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One. Two.", "One."),
        ("Seconds, such as 0.5; e.g. one. `b`: c.", "Seconds, such as 0.5; e.g. one."),
        ("Only one", "Only one"),
    ],
)
def test_the_first_sentence_ends_before_the_next_one(text: str, first: str) -> None:
    assert first_sentence(text) == first


T = TypeVar("T")


class Sized(Protocol):
    def size(self) -> int: ...


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (1, int),
        (1, float),
        (True, bool),
        ("x", str),
        (None, None),
        (None, int | None),
        ("x", str | os.PathLike[str]),
        (Path("x"), str | os.PathLike[str]),
        ("a", Literal["a", "b"]),
        ([1, 2.5], list[float]),
        ({"a": 1}, dict[str, int]),
        ((1, 2), tuple[int, ...]),
        ([1], Sequence[int]),
        ((1, 2.5), tuple[int, float]),
        ({"a"}, Collection[str]),
        ({"a": ["b"]}, Mapping[str, Sequence[str]]),
        (1, Annotated[int, "a note"]),
        (len, Callable[[Any], int]),
        (1, Any),
        (1, "Unresolved"),
        (1, T),
        (1, Sized),
    ],
    ids=str,
)
def test_a_value_is_of_its_type(value, annotation):
    assert matches_type(value, annotation)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        ("1", int),
        (True, int),
        (True, float),
        (1.0, int),
        (1, bool),
        (b"x", str),
        (None, int),
        (3, str | os.PathLike[str]),
        ("c", Literal["a", "b"]),
        (["x"], list[float]),
        ({"a": "b"}, dict[str, int]),
        ((1,), list[int]),
        ((1,), tuple[int, int]),
        ("ab", Sequence[str]),
        ({"a": 1}, Collection[str]),
        ([1], Sequence[str]),
        ({1}, Collection[str]),
        ({"a": "b"}, Mapping[str, int]),
        (math.nan, float),
        (True, Literal["a"]),
        ("1", Annotated[int, "a note"]),
        (1, Callable[[Any], int]),
    ],
    ids=str,
)
def test_a_value_is_not_of_its_type(value, annotation):
    assert not matches_type(value, annotation)


@pytest.mark.parametrize(
    ("annotation", "inside", "outside", "words"),
    [
        (AtLeastZero, [0, 1], [-1], "at least 0"),
        (PositiveInt, [1, 10**9], [0, -1], "at least 1"),
        (Fraction, [0, 1, 0.5], [-0.1, 1.1], "between 0 and 1"),
        (Fraction | None, [0, 1, None], [2], "between 0 and 1, or None"),
        (Percentile, [0, 100], [101], "between 0 and 100"),
        (Annotated[float, Interval(gt=0, le=1)], [1], [0], "above 0 and at most 1"),
        (Annotated[float, Gt(0), "a text", Lt(1)], [0.5], [0, 1], "above 0 and below 1"),
        (Annotated[int, Le(3)] | str, [3, "a"], [4], "at most 3"),
        (int, [-1], [], ""),
        (Any, [-1, "a"], [], ""),
    ],
)
def test_a_value_outside_a_range_misses_it(
    annotation: Any, inside: list[Any], outside: list[Any], words: str
) -> None:
    assert [range_missed(value, annotation) for value in inside] == [""] * len(inside)
    assert [range_missed(value, annotation) for value in outside] == [words] * len(outside)


def test_plain_types_have_no_ranges() -> None:
    assert plain_type(Fraction) is float
    assert plain_type(Fraction | None) == float | None
    assert plain_type(list[int] | str) == list[int] | str
    assert plain_type(Any) is Any


def test_a_minimum_above_its_maximum_is_refused() -> None:
    check_pairs("a", {"min_len": 3, "max_len": 3, "min_num": None, "max_num": 1, "min_x": 9})
    with pytest.raises(OperatorOptionError, match=r"'min_len' must be at most max_len, which is 2"):
        check_pairs("a", {"max_len": 2, "min_len": 3})
    with pytest.raises(OperatorOptionError, match=r"text.LengthFilter: .* which is 1; got 2"):
        data.text.LengthFilter(2, 1)


@pytest.mark.parametrize("records", [{"text": "a"}, [{"text": "a"}]], ids=["one", "several"])
def test_records_in_place_of_an_option_are_an_error_that_says_how_to_run(records: Any) -> None:
    with pytest.raises(OperatorOptionError, match=r"data\.text\.Normalize\(\)\(records\)"):
        data.text.Normalize(records)


def test_operators_refuse_options_outside_of_their_range() -> None:
    said = r"filters.Numbers: option 'max_number_to_text_ratio' must be between 0 and 1, or None; "
    with pytest.raises(OperatorOptionError, match=f"{said}got 15"):
        data.filters.Numbers(max_number_to_text_ratio=15)


def test_signatures_show_plain_types() -> None:
    shown = inspect.signature(data.filters.WordRepetition)

    assert "(*, ngram_size: int = 10, min_ratio: float | None = None" in str(shown)


INDEX = ArtefactReference("index")


def test_a_node_and_a_handle_are_replaced_also_inside_containers() -> None:
    handle = Artefact(Path("/a"), "0" * 32, 1, 1)
    given = {"first": [NodeReference("index"), "index"], "second": ({"x": handle},)}
    assert as_option(given) == {"first": [INDEX, "index"], "second": ({"x": Path("/a")},)}


def test_other_values_stay_the_same_objects() -> None:
    for value in ("text", [1, [2]], {"a": ("b", {})}, object()):
        assert as_option(value) is value
        assert with_references(value, {}) is value


def test_a_container_may_contain_itself() -> None:
    value: list[object] = [INDEX]
    value.append(value)
    assert set(referenced(value)) == {"index"}
    assert as_option(value) is value


def test_references_are_found_in_order_and_replaced() -> None:
    value = [INDEX, {"other": ArtefactReference("other")}, "index"]
    assert list(referenced(value)) == ["index", "other"]
    found = with_references(value, {"index": Path("/i"), "other": Path("/o")})
    assert found == [Path("/i"), {"other": Path("/o")}, "index"]


def test_a_reference_is_shown_and_pickled() -> None:
    assert repr(INDEX) == "<artefact index>"
    assert pickle.loads(pickle.dumps(INDEX)) == INDEX


def registry() -> OperatorRegistry:
    return OperatorRegistry(lambda operator, data: data)


def digest_of(operator: Any) -> str:
    found: str = operator.__dataops__.options_digest
    return found


def shorten(registry: OperatorRegistry, name: str, renamed: dict[str, str] | None = None) -> Any:
    """Return an operator with one option of a name."""
    code = f"def shorten(record: dict, {name}: int = 80, key='text'): return record"
    space: dict[str, Any] = {"__name__": __name__}
    exec(code, space)  # noqa: S102 - the name of a parameter cannot be computed otherwise
    return registry("data.demo", renamed_options=renamed)(space["shorten"])


def group_with_classes() -> Any:
    group: Any = registry().new_group("demo")

    class Shorten(group):
        renamed_options: ClassVar = {
            "len": "max_chars",
            "max_len": "max_chars",
            "field": "input_key",
        }

        def __init__(self, max_chars: int = 80, input_key: str = "text", **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.max_chars, self.input_key = max_chars, input_key

        def forward(self, record: dict[str, Any]) -> dict[str, Any]:
            return record

    return group


@pytest.mark.parametrize("old", ["len", "max_len"])
def test_a_former_name_is_accepted_with_a_warning_that_has_the_present_one(old: str) -> None:
    with pytest.warns(DeprecationWarning, match="is named") as caught:
        operator = group_with_classes().Shorten(**{old: 3})

    (warning,) = caught
    assert str(warning.message) == (
        f"Operator demo.Shorten: option {old!r} is named 'max_chars' now"
    )
    assert warning.filename == __file__
    assert operator.max_chars == 3
    assert dict(operator.__dataops__.options) == {"max_chars": 3, "input_key": "text"}
    assert repr(operator) == "data.demo.Shorten(max_chars=3)"


def test_the_warning_of_a_function_names_the_line_of_its_caller() -> None:
    shortened = shorten(registry(), "max_chars", {"max_len": "max_chars"})
    with pytest.warns(DeprecationWarning, match="'max_len' is named 'max_chars'") as caught:
        operator = shortened(max_len=3)

    assert caught[0].filename == __file__
    assert operator.__dataops__.options["max_chars"] == 3


def test_a_present_name_gives_no_warning() -> None:
    with warnings.catch_warnings(record=True) as caught:
        group_with_classes().Shorten(3, input_key="title")

    assert caught == []


@pytest.mark.parametrize(
    ("positional", "given"),
    [
        ((), {"max_chars": 3, "max_len": 3}),
        ((), {"max_len": 3, "max_chars": 4}),
    ],
)
def test_two_names_of_an_option_are_refused(positional: Any, given: dict[str, int]) -> None:
    with pytest.raises(OperatorOptionError, match="'max_chars' was given, and 'max_len', too"):
        group_with_classes().Shorten(*positional, **given)


def test_two_former_names_are_refused() -> None:
    with pytest.raises(OperatorOptionError, match="was given, and '(max_)?len', too"):
        group_with_classes().Shorten(len=3, max_len=3)


def test_a_former_name_and_a_position_are_refused() -> None:
    with (
        pytest.warns(DeprecationWarning, match="is named"),
        pytest.raises(OperatorOptionError, match="'max_chars' was given twice"),
    ):
        group_with_classes().Shorten(3, max_len=3)


@pytest.mark.parametrize(("typo", "meant"), [("max_lenn", "max_chars"), ("max_char", "max_chars")])
def test_a_misspelt_name_is_answered_with_the_present_one(typo: str, meant: str) -> None:
    with pytest.raises(OperatorOptionError, match=f"did you mean '{meant}'.* options: max_chars"):
        group_with_classes().Shorten(3, **{typo: 3})


def test_the_digest_is_that_of_the_first_name() -> None:
    first = digest_of(shorten(registry(), "len")(len=3))
    second = shorten(registry(), "max_len", {"len": "max_len"})
    third = shorten(registry(), "max_chars", {"len": "max_chars", "max_len": "max_chars"})

    assert digest_of(second(max_len=3)) == first
    assert digest_of(third(max_chars=3)) == first
    assert digest_of(third(max_chars=4)) != first
    assert digest_of(shorten(registry(), "max_chars")(max_chars=3)) != first


def test_credentials_and_limits_count_by_their_first_name() -> None:
    before = shorten(registry(), "timeout")
    renamed = shorten(registry(), "max_wait", {"timeout": "max_wait"})

    assert digest_of(before(timeout=1)) == digest_of(before(timeout=2))
    assert digest_of(renamed(max_wait=3)) == digest_of(before(timeout=2))


def test_a_sent_operator_and_a_chain_keep_the_digest() -> None:
    before = shorten(registry(), "max_len")(max_len=3)
    after = shorten(registry(), "max_chars", {"max_len": "max_chars"})(max_chars=3)
    chains = [chain_of("a", [Part("one", one)], ExecutionSettings()) for one in (before, after)]

    assert digest_of(chains[0]) == digest_of(chains[1])
    assert digest_of(receive(ship(after))) == digest_of(before)


def test_a_subclass_inherits_former_names_and_may_use_one_again() -> None:
    group = group_with_classes()

    class Inherits(group.Shorten):  # type: ignore[misc]
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)

    class Again(group.Shorten):  # type: ignore[misc]
        def __init__(self, max_len: int = 5, **kwargs: Any) -> None:
            super().__init__(max_len, **kwargs)

    with pytest.warns(DeprecationWarning, match="'max_len' is named 'max_chars'"):
        assert Inherits(max_len=3).max_chars == 3
    assert Again(max_len=3).max_chars == 3


def test_a_former_name_that_init_passes_on_is_refused_with_the_present_one() -> None:
    group = group_with_classes()

    class Passes(group.Shorten):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(3, field="title")

    with pytest.raises(OperatorOptionError, match="give it as input_key to super"):
        Passes()


@pytest.mark.parametrize(
    ("renamed", "said"),
    [
        ({"max_len": "max_char"}, "'max_char', which is no option; it has max_chars, key"),
        ({"key": "max_chars"}, "'key', which is still one"),
        ({"_max_len": "max_chars"}, "'_max_len', which cannot be the name of one"),
        ({"max len": "max_chars"}, "'max len', which cannot be the name of one"),
        ({"max_len": 3}, "must be a dict of present names by former names"),
        (["max_len"], "must be a dict of present names by former names"),
    ],
)
def test_a_wrong_table_of_names_is_refused_where_it_is_defined(renamed: Any, said: str) -> None:
    with pytest.raises(OperatorDefinitionError, match=said):
        shorten(registry(), "max_chars", renamed)
