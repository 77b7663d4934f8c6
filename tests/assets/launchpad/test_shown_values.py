"""Values that the launchpad shows."""

from collections.abc import Callable
from typing import Any

from dagster_dataops.assets.launchpad.operator_config import configured
from dagster_dataops.assets.launchpad.shown_values import in_order_of
from tests.assets.launchpad.options import Client, fields_of, operator_of, params_of, scaffolded
from tests.registries import OperatorRegistry


def test_left_out_options_are_named() -> None:
    def node(
        record: dict,
        make: Callable[[str], str] = str.upper,
        api_key: str = "sk-123",
        client: Client | None = None,
        words: list[str] = ["word"] * 1000,
        size: int = 2**60,
        plain: str = "",
    ) -> dict:
        return record

    params = params_of(OperatorRegistry(lambda *_: None)("data.text")(node)())
    assert list(fields_of(params)) == ["plain"]
    said = params.description or ""
    assert said.startswith(
        "Options of data.text.node. Not shown, with their values of the pipeline: "
    )
    for name in ("make", "api_key` (secret)", "client", "words` (list)", "size` (int)"):
        assert f"`{name}" in said
    assert "sk-123" not in said


def test_nothing_that_a_launchpad_drops_of_a_mapping_changes_an_option() -> None:
    operator = operator_of(dict[str, Any], {"a": None, "b": {}, "c": 1})
    again = configured(operator, scaffolded(operator))
    assert again.__dataops__.options == {"option": {"a": None, "b": {}, "c": 1}}


def test_the_order_of_entries_is_that_of_the_pipeline_whatever_dagster_makes_of_it() -> None:
    shown = {"b": 1, "a": {"z": 1, "y": 2}, "c": [{"f": 1, "e": 2}]}
    stored = {"a": {"x": 5, "y": 3, "z": 1}, "b": 1, "c": [{"e": 2, "f": 1}, {"h": 1, "g": 2}]}
    for given in (stored, dict(reversed(stored.items()))):
        made = in_order_of(given, shown)
        assert made == given
        assert list(made) == ["b", "a", "c"]
        assert list(made["a"]) == ["z", "y", "x"]
        assert [list(one) for one in made["c"]] == [["f", "e"], ["g", "h"]]
    assert in_order_of([1], {"a": 1}) == [1]


def test_a_launch_proposes_the_options_of_the_pipeline_and_nothing_else() -> None:
    assert scaffolded(operator_of(int, 3)) == {"params": {"option": 3}}
