"""The config schema of a node is that of its Config class, however it was come by."""

from types import SimpleNamespace
from typing import Any, Literal

import pytest

from dagster_dataops import pipeline
from dagster_dataops.assets.launchpad.config_schema import config_of, config_schema
from dagster_dataops.assets.launchpad.operator_config import SettingsConfig, config_type_of
from dagster_dataops.graph.graph import OperatorNode
from dagster_dataops.operators.registry import OperatorRegistry


def nodes(registry: OperatorRegistry, *uses: dict[str, Any]) -> list[OperatorNode]:
    @registry("data.text", _concurrency_mode="thread")
    def work(
        record: dict,
        text: str = "a",
        count: int = 1,
        share: float = 0.5,
        loud: bool = False,
        form: Literal["long", "short"] = "long",
        names: list | None = None,
        maybe: int | None = None,
        api_key: str = "",
        anything: Any = None,
    ) -> dict:
        """Do work."""
        return record

    with pipeline("docs") as ppl:
        for number, options in enumerate(uses):
            ppl.add(f"node_{number}", work(**options))
    return list(ppl.graph.nodes.values())


def plain(fields: Any) -> Any:
    """Fields as what a launch sees of them: types, defaults, descriptions."""
    found = {}
    for name, field in fields.items():
        inner = getattr(field.config_type, "fields", None)
        default = field.default_value if field.default_provided and inner is None else None
        found[name] = (
            plain(inner) if inner else field.config_type.key,
            type(default),
            default,
            field.description,
            field.is_required,
        )
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"text": "b"},
        {"text": "b", "count": 7, "share": 0.25, "loud": True},
        {"share": 1},
        {"share": float("inf")},
        {"form": "short"},
        {"names": ["a"]},
        {"names": ["a", "b"], "text": "c"},
        {"maybe": 4},
        {"api_key": "hidden", "text": "z"},
        {"anything": 3},
        {"anything": SimpleNamespace()},
        {"anything": {"a": 1}, "count": 2},
        {"_max_workers": 3},
        {"_ignore_errors": False},
    ],
    ids=str,
)
def test_the_schema_of_a_later_use_is_that_of_its_own_class(
    options: dict[str, Any], registry: OperatorRegistry
) -> None:
    found = nodes(registry, {}, {"text": "x", "share": 0.1, "form": "short"}, options)
    for node in found:
        assert plain(config_schema(node)) == plain(config_type_of(node).to_fields_dict())


def test_what_nothing_is_changed_of_is_shared(registry: OperatorRegistry) -> None:
    one, other, third = nodes(registry, {}, {}, {"count": 3})
    assert config_schema(one) is config_schema(other)
    assert config_schema(one)["timeout"] is config_schema(third)["timeout"]
    assert config_schema(third)["params"].default_value["count"] == 3
    assert config_schema(one)["params"].default_value["count"] == 1


def test_values_that_refuse_to_be_compared_are_borne(registry: OperatorRegistry) -> None:
    class Stubborn:
        def __eq__(self, other: object) -> bool:
            msg = "ambiguous"
            raise ValueError(msg)

        __hash__ = None  # type: ignore[assignment]

    one, other = nodes(registry, {"anything": Stubborn()}, {"anything": Stubborn()})
    assert plain(config_schema(one)) == plain(config_schema(other))


def test_a_launch_becomes_the_config_class_of_its_node(registry: OperatorRegistry) -> None:
    (node,) = nodes(registry, {"count": 2})
    config = config_of(node, config_schema(node), {"params": {"count": 5}, "max_workers": 3})
    assert config.max_workers == 3
    assert type(config) is not SettingsConfig
    (params,) = [value for name, value in config if name == "params"]
    assert 5 in dict(params).values()
    assert config.resume == "auto"


@pytest.mark.parametrize("names", [[], ["TimeoutError"], None])
def test_a_launch_may_name_exceptions_or_none(
    registry: OperatorRegistry, names: list[str] | None
) -> None:
    (node,) = nodes(registry, {"count": 2})
    assert config_of(node, config_schema(node), {"retry_on": names}).retry_on == names


def test_a_launch_that_says_nothing_leaves_failures_to_the_operator(
    registry: OperatorRegistry,
) -> None:
    stops, goes_on = nodes(registry, {"_ignore_errors": False}, {"count": 2})
    assert not config_of(stops, config_schema(stops), {}).ignore_errors
    assert config_of(goes_on, config_schema(goes_on), {}).ignore_errors


def test_settings_left_empty_have_no_default_to_fill_in(registry: OperatorRegistry) -> None:
    (node,) = nodes(registry, {"count": 2})
    fields = config_schema(node)
    empty = {name for name, field in fields.items() if not field.default_provided}
    assert empty == {
        "max_workers",
        "concurrency_mode",
        "limit",
        "timeout",
        "retries",
        "retry_on",
        "backoff",
        "stop_after_failures",
        "drain_seconds",
    }
    assert not any(fields[name].is_required for name in empty)


def test_a_launch_that_changes_no_option_takes_no_class_of_its_node(
    registry: OperatorRegistry,
) -> None:
    (node,) = nodes(registry, {"count": 2})
    params = config_schema(node)["params"].default_value
    config = config_of(node, config_schema(node), {"params": params, "max_workers": 3})
    assert type(config) is SettingsConfig
    assert config.max_workers == 3
