"""The configuration of an operator: its schema, and an operator with the values of a launch."""

import copy
import enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, Optional

import dagster as dg
import pytest

from dagster_dataops import Operator, chain
from dagster_dataops.assets.launchpad.config_schema import COMMON_FIELDS, LazyField, config_field
from dagster_dataops.assets.launchpad.operator_config import configured
from dagster_dataops.errors import OperatorOptionError
from tests.assets.helpers import (
    asset_of,
    definitions_of,
    execute,
    pipeline_of,
    result_of,
    write_jsonl,
)
from tests.assets.launchpad.options import fields_of
from tests.registries import OperatorRegistry

FIELDS = {
    *("params", "max_workers", "concurrency_mode", "ignore_errors", "timeout", "retries"),
    *("retry_on", "backoff", "max_worker_memory_mb", "stop_after_failures", "drain_seconds"),
    *("missing", "limit", "try", "resume"),
}


class Color(enum.Enum):
    RED = "red"


NOT_SHOWN = [
    *(len, Path("/data"), (1, 2), {1, 2}, b"bytes", Color.RED, SimpleNamespace()),
    *(float("nan"), float("inf"), {"a": SimpleNamespace()}, {1: "a"}, [Path("/data")]),
]


@pytest.fixture
def work(registry: OperatorRegistry) -> Any:
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

    return work


@pytest.mark.parametrize(
    ("options", "hidden"),
    [
        ({}, ""),
        ({"text": "b"}, ""),
        ({"text": "b", "count": 7, "share": 0.25, "loud": True}, ""),
        ({"share": 1}, ""),
        ({"share": float("inf")}, "share"),
        ({"form": "short"}, ""),
        ({"names": ["a"]}, ""),
        ({"names": ["a", "b"], "text": "c"}, ""),
        ({"maybe": 4}, ""),
        ({"api_key": "hidden", "text": "z"}, ""),
        ({"anything": 3}, ""),
        *(({"anything": value}, "anything") for value in NOT_SHOWN),
        ({"anything": {"a": 1}, "count": 2}, ""),
    ],
    ids=str,
)
def test_the_schema_shows_the_values_of_its_operator(
    options: dict[str, Any], hidden: str, work: Any
) -> None:
    values = work(**options).__dataops__.options
    shown = config_field(work(**options)).default_value["params"]
    assert shown == {name: values[name] for name in shown}
    assert values.keys() - shown.keys() == {"api_key", hidden} - {""}


def test_values_that_cannot_be_compared_are_supported(work: Any) -> None:
    class Stubborn:
        def __eq__(self, other: object) -> bool:
            msg = "ambiguous"
            raise ValueError(msg)

        __hash__ = None  # type: ignore[assignment]

    field = config_field(work(anything=Stubborn()))
    assert "anything" not in field.default_value["params"]
    assert "`anything` (Stubborn)" in (fields_of(field)["params"].description or "")


def test_settings_left_empty_have_no_default_to_fill_in(work: Any) -> None:
    field = config_field(work(count=2))
    assert field.default_value.keys() == {"params"}
    assert not any(one.default_provided for one in fields_of(field).values())
    assert not any(one.is_required for one in fields_of(field).values())
    assert fields_of(field).keys() == FIELDS


_MADE = {"a": dg.Field(int, default_value=3), "b": dg.Field(str, is_required=False)}


def _counting() -> tuple[LazyField, list[int]]:
    calls: list[int] = []

    def make() -> dg.Field:
        calls.append(1)
        return dg.Field(_MADE, description="two of them")

    return LazyField(make), calls


def test_a_field_is_created_once_on_first_access() -> None:
    field, calls = _counting()

    @dg.op(config_schema=field)
    def configured(context: dg.OpExecutionContext) -> int:
        return context.op_config["a"]

    assert not calls
    made = dg.Field(_MADE, description="two of them")
    assert field.config_type is made.config_type
    assert (field.default_value, field.is_required) == (made.default_value, made.is_required)
    assert (field.description, field.is_secret) == (made.description, made.is_secret)
    assert repr(field) == repr(made)
    assert len(calls) == 1


def test_a_launch_is_checked_by_the_lazy_field() -> None:
    @dg.op(config_schema=_counting()[0])
    def configured(context: dg.OpExecutionContext) -> int:
        return context.op_config["a"]

    job = dg.GraphDefinition("all", node_defs=[configured]).to_job()
    assert job.execute_in_process().output_for_node("configured") == 3
    given = {"ops": {"configured": {"config": {"a": 4}}}}
    assert job.execute_in_process(run_config=given).output_for_node("configured") == 4
    with pytest.raises(dg.DagsterInvalidConfigError, match="a"):
        job.execute_in_process(run_config={"ops": {"configured": {"config": {"a": "x"}}}})


def test_an_unknown_attribute_of_a_field_is_an_attribute_error() -> None:
    field, calls = _counting()
    with pytest.raises(AttributeError, match="'LazyField' object has no attribute 'colour'"):
        _ = field.colour
    assert len(calls) == 1
    assert copy.copy(field).default_value == field.default_value
    assert not hasattr(LazyField(dict), "__wrapped__")  # type: ignore[arg-type]


@pytest.fixture
def tag(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="thread", _max_workers=2)
    def tag(
        record: dict,
        prefix: str = "a",
        times: int = 1,
        ratio: float = 1,
        style: Literal["plain", "loud"] = "plain",
        suffix: Optional[str] = None,  # noqa: UP045 - both spellings must work
        limit: int | None = None,
        words: list[str] = [],  # noqa: B006
    ) -> dict:
        made = [prefix * times, ratio, style, suffix, limit, words]
        return {"id": record["id"], "made": made}

    return tag


def run_tag(
    tag: Any, root: Path, instance: dg.DagsterInstance, config: dict[str, Any]
) -> list[dict[str, Any]]:
    source = write_jsonl(root / "texts.jsonl", [{"id": 0}])
    definitions = definitions_of(pipeline_of(tag=tag()), source, root)
    execute(definitions, instance, {"ops": {"docs__tag": {"config": config}}})
    return result_of(root, "docs", "tag")


def config_of(operator: Operator) -> dict[str, Any]:
    """Return the configuration of a launch that changes nothing."""
    config: dict[str, Any] = config_field(operator).default_value
    return config


def params_of(operator: Operator) -> dict[str, Any]:
    params: dict[str, Any] = config_of(operator).get("params", {})
    return params


PARAMS = {"prefix": "b", "times": 2, "ratio": 0.5, "style": "loud", "limit": 3, "suffix": "!"}


@pytest.mark.parametrize(
    ("options", "config", "made"),
    [
        ({}, {}, ["a", 1, "plain", None, None, []]),
        ({}, {"params": {**PARAMS, "words": ["x"]}}, ["bb", 0.5, "loud", "!", 3, ["x"]]),
        (
            {"prefix": "b", "style": "loud", "suffix": "?", "words": ["x"]},
            {"params": {"times": 2}, "max_workers": 1},
            ["bb", 1, "loud", "?", None, ["x"]],
        ),
    ],
)
def test_params_override_the_options_that_they_name(
    options: Any, config: Any, made: Any, tag: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    rows = run_tag(lambda: tag(**options), root, instance, config)
    assert rows == [{"id": 0, "made": made}]


def test_a_launch_can_change_an_operator_that_gives_its_base_class_an_option(
    registry: OperatorRegistry,
) -> None:
    class Asks(Operator):
        def __init__(self, model: str = "small", *, words: tuple = (), **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.given = (model, words)

    @registry("data.text")
    class Names(Asks):
        def __init__(self, key: str = "text", **kwargs: Any) -> None:
            super().__init__(words=(key,), **kwargs)

        def forward(self, record: dict) -> dict:
            return record

    changed = configured(Names("title"), {"params": {"model": "large"}})
    assert changed.given == ("large", ("title",))
    assert changed.__dataops__.options["key"] == "title"


def test_nodes_with_the_same_options_share_the_type_of_their_configuration(tag: Any) -> None:
    one, other = (config_field(tag(prefix=prefix)) for prefix in ("b", "c"))
    assert one.config_type is other.config_type
    assert one.default_value["params"] == {**other.default_value["params"], "prefix": "b"}


@pytest.mark.parametrize(
    "config",
    [
        {"params": {"prefx": "b"}},
        {"params": {"times": "many"}},
        {"params": {"ratio": "half"}},
        {"params": {"style": "quiet"}},
        {"params": {"limit": "three"}},
        {"prefix": "b"},
        {"concurrency_mode": "async"},
        {"concurrency_mode": "parallel"},
        {"resume": {"record": "failed"}},
        {"resume": ["failed"]},
        {"ignore_errors": "no"},
        {"timeout": "long"},
        {"retries": 1.5},
        {"retry_on": "TimeoutError"},
        {"backoff": "1 s"},
    ],
)
def test_unknown_options_and_wrong_types_are_refused_before_a_run(
    config: dict[str, Any], tag: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError):
        run_tag(tag, root, instance, config)
    assert instance.get_runs_count() == 0
    assert not (root / "docs").exists()


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"resume": "always"}, "'resume' is 'always'|resume is 'always'"),
        ({"resume": {"records": "failed xand dropped"}}, "character 8.*did you mean 'and'"),
        ({"try": -1}, "try is -1"),
        ({"try": 2, "limit": 1}, "try is 2; it must be empty beside limit"),
        ({"max_workers": -1}, "docs/tag: .*'max_workers' must be .* at least 1; got -1"),
        ({"timeout": -1.0}, "docs/tag: .* must be a .*number"),
        ({"retries": -1}, "docs/tag: .* must be a .*number"),
        ({"backoff": -1.0}, "docs/tag: .* must be a .*number"),
        ({"retry_on": ["every second"]}, "docs/tag: .* 'retry_on' must be exception classes"),
    ],
)
def test_a_value_that_is_none_fails_the_step_before_the_first_record(
    config: dict[str, Any], reason: str, tag: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    with pytest.raises(dg.Failure, match=reason) as caught:
        run_tag(tag, root, instance, config)
    assert caught.value.allow_retries is False
    assert not (root / "docs").exists()


def test_an_option_that_the_operator_itself_refuses_fails_the_step_by_name(
    registry: OperatorRegistry, root: Path, instance: dg.DagsterInstance
) -> None:
    class Picky(registry.new_group("text")):  # type: ignore[misc]
        def __init__(self, share: float = 0.5, **settings: Any) -> None:
            super().__init__(**settings)
            if not 0 <= share <= 1:
                msg = f"share must be in [0, 1], got {share}"
                raise ValueError(msg)

        def forward(self, record: dict) -> dict:
            return record

    source = write_jsonl(root / "texts.jsonl", [{"id": 0}])
    definitions = definitions_of(pipeline_of(picky=Picky()), source, root)
    config = {"ops": {"docs__picky": {"config": {"params": {"share": 2.0}}}}}
    with pytest.raises(dg.Failure, match="docs/picky: .* refuses .* share must be in") as caught:
        execute(definitions, instance, config)
    assert caught.value.allow_retries is False
    assert not (root / "docs").exists()


def annotated(registry: OperatorRegistry, annotation: Any, value: Any) -> Operator:
    def node(record: dict, option: Any = value) -> dict:
        return {"made": option}

    node.__annotations__["option"] = annotation
    made: Operator = registry("data.text", _concurrency_mode="thread")(node)()
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("annotation", "value", "other"),
    [
        (int | str, 1, "a"),
        (Optional[Literal["a", "b"]], None, "a"),  # noqa: UP045
        (Optional[Literal["a", "b"]], "b", "a"),  # noqa: UP045
        (Literal[1, 2], 1, 2),
        (Literal["a", None], None, "a"),  # noqa: PYI061
        (tuple[int, int], None, [1, 2]),
        (set[str], None, None),
        (dict[str, Any], {"a": 1}, {"b": 2}),
        (dict[str, int] | None, None, {"b": 2}),
        (list[dict[str, int]], [], [{"b": 2}]),
        (list[str] | None, None, ["b"]),
        (bytes | None, None, None),
        (str, 1, "a"),
        (bool, 0, True),
        (float | None, 1, 0.5),
        ("Unknown", "x", "y"),  # a type that exists for the type checker alone
    ],
    ids=str,
)
def test_no_type_of_an_option_breaks_the_definitions_or_the_run(
    annotation: Any,
    value: Any,
    other: Any,
    registry: OperatorRegistry,
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    source = write_jsonl(root / "texts.jsonl", [{"id": 0}])
    operator = annotated(registry, annotation, value)
    definitions = definitions_of(pipeline_of(node=operator), source, root)
    dg.Definitions.validate_loadable(definitions)
    execute(definitions, instance)
    assert result_of(root, "docs", "node") == [{"made": value}]
    config = {"ops": {"docs__node": {"config": {"params": {"option": other}}}}}
    execute(definitions, instance, config)
    assert result_of(root, "docs", "node") == [{"made": other}]


@pytest.mark.parametrize(
    "name",
    ["json", "copy", "schema", "dict", "model_config", "model_dump", "params", "class_"],
)
def test_no_name_of_an_option_breaks_the_definitions_or_the_run(
    name: str, registry: OperatorRegistry, root: Path, instance: dg.DagsterInstance
) -> None:
    @registry("data.text", _concurrency_mode="thread")
    def node(record: dict, **options: Any) -> dict:
        return {"made": options}

    source = write_jsonl(root / "texts.jsonl", [{"id": 0}])
    definitions = definitions_of(pipeline_of(node=node(**{name: 1})), source, root)
    execute(definitions, instance, {"ops": {"docs__node": {"config": {"params": {name: 2}}}}})
    assert result_of(root, "docs", "node") == [{"made": {name: 2}}]


def test_an_option_may_begin_with_an_underscore(registry: OperatorRegistry) -> None:
    @registry("data.text")
    def node(record: dict, _x: int = 1) -> dict:
        return record

    assert params_of(node()) == {"_x": 1}


def test_secrets_are_not_offered_but_reach_the_operator(
    registry: OperatorRegistry, root: Path, instance: dg.DagsterInstance
) -> None:
    @registry("data.text", _concurrency_mode="thread")
    def node(record: dict, api_key: str = "", model: str = "small") -> dict:
        return {"made": [api_key, model]}

    operator = node(api_key="sk-123")
    assert params_of(operator) == {"model": "small"}
    source = write_jsonl(root / "texts.jsonl", [{"id": 0}])
    definitions = definitions_of(pipeline_of(node=operator), source, root)
    config = {"ops": {"docs__node": {"config": {"params": {"model": "big"}}}}}
    execute(definitions, instance, config)
    assert result_of(root, "docs", "node") == [{"made": ["sk-123", "big"]}]


def test_nodes_without_options_have_no_params(
    registry: OperatorRegistry,
) -> None:
    @registry("data.text")
    def node(record: dict) -> dict:
        return record

    assert set(fields_of(config_field(node()))) == {*COMMON_FIELDS, "concurrency_mode"}


def test_an_async_operator_offers_async_and_others_do_not(registry: OperatorRegistry) -> None:
    @registry("data.text")
    async def node(record: dict) -> dict:
        return record

    assert configured(node(), config_of(node())).__dataops__.resolved.concurrency_mode == "async"
    field = dg.Field({"concurrency_mode": fields_of(config_field(node()))["concurrency_mode"]})

    @dg.op(config_schema=field)
    def mode(context: dg.OpExecutionContext) -> Any:
        return context.op_config["concurrency_mode"]

    assert mode(dg.build_op_context(op_config={"concurrency_mode": "async"})) == "async"


def test_settings_override_those_of_the_operator(tag: Any) -> None:
    config = {"max_workers": 5, "concurrency_mode": "single", "ignore_errors": False}
    resolved = configured(tag(), config).__dataops__.resolved
    assert (resolved.max_workers, resolved.concurrency_mode) == (5, "single")
    assert resolved.ignore_errors is False


def test_time_limits_and_tries_can_be_changed_and_lifted(tag: Any) -> None:
    operator = tag(_timeout=5, _retries=2, _retry_on=OSError, _backoff=1, _stop_after_failures=9)

    def resolved(**given: Any) -> tuple[Any, ...]:
        found = configured(operator, given).__dataops__.resolved
        times = found.timeout, found.retries, found.retry_on, found.backoff
        return *times, found.stop_after_failures

    assert resolved() == resolved(retry_on=[]) == resolved(retry_on=None)
    assert resolved() == (5, 2, (OSError,), 1, 9)
    lifted = resolved(timeout=0, retries=0, backoff=0, stop_after_failures=0)
    assert lifted == (None, 0, (OSError,), 0, 0)
    given = {"retries": 9, "retry_on": ["TimeoutError", "a.B"], "stop_after_failures": 8}
    assert resolved(timeout=0.5, backoff=3, **given) == (0.5, 9, ("TimeoutError", "a.B"), 3, 8)


def test_a_flaky_operator_gets_its_tries_from_the_launchpad(
    registry: OperatorRegistry, root: Path, instance: dg.DagsterInstance
) -> None:
    tries = []

    @registry("data.text", _concurrency_mode="thread")
    def flaky(record: dict) -> dict:
        tries.append(record["id"])
        if len(tries) < 3:
            raise TimeoutError
        return record

    assert run_tag(
        flaky, root, instance, {"retries": 2, "retry_on": ["TimeoutError"], "backoff": 0.0}
    )
    assert tries == [0, 0, 0]


def test_an_operator_that_stops_at_errors_does_so_unless_a_launch_changes_it(tag: Any) -> None:
    operator = tag(_ignore_errors=False)
    for config in ({}, config_of(operator), {"ignore_errors": None}):
        assert configured(tag(), config).__dataops__.resolved.ignore_errors is True
        assert configured(operator, config).__dataops__.resolved.ignore_errors is False
    changed = configured(operator, {"ignore_errors": True})
    assert changed.__dataops__.resolved.ignore_errors is True


def test_a_refused_configuration_is_not_tried_again(
    tag: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    source = write_jsonl(root / "texts.jsonl", [{"id": 0}])
    policy = dg.RetryPolicy(max_retries=3)
    definitions = definitions_of(pipeline_of(tag=tag()), source, root, retry_policy=policy)
    config = {"ops": {"docs__tag": {"config": {"max_workers": -1}}}}
    result = execute(definitions, instance, config, raise_on_error=False)
    kinds = {event.event_type_value for event in result.all_events}
    assert not result.success
    assert "STEP_UP_FOR_RETRY" not in kinds


def test_the_launchpad_schema_names_every_option(tag: Any, root: Path) -> None:
    definitions = definitions_of(pipeline_of(tag=tag()), "texts.jsonl", root)
    schema = asset_of(definitions, "docs", "tag").op.config_schema.config_type
    assert set(schema.fields) == FIELDS  # type: ignore[attr-defined]
    assert "prefix" in schema.fields["params"].config_type.fields  # type: ignore[attr-defined]


@pytest.fixture
def shorten(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="single", renamed_options={"max_len": "max_chars"})
    def shorten(record: dict, max_chars: int = 80) -> dict:
        return {"id": record["id"], "made": max_chars}

    return shorten


def former(root: Path, instance: dg.DagsterInstance, node: Any, params: Any) -> list[dict]:
    source = write_jsonl(root / "texts.jsonl", [{"id": 0}])
    definitions = definitions_of(pipeline_of(node=node), source, root)
    execute(definitions, instance, {"ops": {"docs__node": {"config": {"params": params}}}})
    return result_of(root, "docs", "node")


def test_a_launch_may_give_an_option_by_its_former_name(
    shorten: Any, tmp_path: Path, instance: dg.DagsterInstance, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.warns(DeprecationWarning, match="Run configuration: .*'max_len' is named 'max_ch"):
        (record,) = former(tmp_path, instance, shorten(), {"max_len": 3})

    assert record["made"] == 3
    assert "option 'max_len' is named 'max_chars' now" in caplog.text


def test_a_launch_of_both_names_may_change_one(shorten: Any) -> None:
    def launched(operator: Any, former: int) -> Any:
        with pytest.warns(DeprecationWarning, match="max_len"):
            made = configured(operator, {"params": {"max_chars": 5, "max_len": former}})
        return made.__dataops__.options["max_chars"]

    assert launched(shorten(max_chars=5), 5) == 5
    assert launched(shorten(max_chars=5), 6) == 6
    with pytest.raises(OperatorOptionError, match="'max_chars' was given, and 'max_len', too"):
        launched(shorten(), 6)
    assert config_of(shorten())["params"] == {"max_chars": 80}  # the present name alone


def test_a_part_of_a_chain_has_former_names(
    shorten: Any, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    node = chain(shorten(), name="node")
    with pytest.warns(DeprecationWarning, match=r"'shorten\.max_len' is named 'max_chars'"):
        (record,) = former(tmp_path, instance, node, {"shorten": {"max_len": 3}})

    assert record["made"] == 3
