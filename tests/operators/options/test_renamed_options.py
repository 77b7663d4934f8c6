import warnings
from typing import Any, ClassVar

import pytest

from dagster_dataops.errors import OperatorDefinitionError, OperatorOptionError
from dagster_dataops.operators.chains.chain import Part, chain_of
from dagster_dataops.operators.options.settings import ExecutionSettings
from dagster_dataops.operators.pickling import receive, ship
from tests.registries import OperatorRegistry


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
