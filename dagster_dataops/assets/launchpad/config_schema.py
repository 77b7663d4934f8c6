"""The config schema of an operator: the fields against which Dagster checks a launch.

Options without a JSON form (callables, objects) are left out and keep their value of the pipeline.
So do secrets, because Dagster would store and show them.

Dagster checks types at launch, before a run exists. The step checks ranges before the first
record.
"""

from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.launchpad.json_schema_types import (
    choice,
    config_type,
    nullable,
    shape,
)
from dagster_dataops.assets.launchpad.params import shown_params
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.concurrency_modes import MODES, PACKAGE_MODES
from dagster_dataops.operators.options.docstrings import first_sentence
from dagster_dataops.operators.options.settings import (
    MISSING,
    MISSING_RULES,
    MODE,
    execution_settings,
)


class LazyField(dg.Field):
    """Becomes the field that ``make`` returns, on first access."""

    def __init__(self, make: Callable[[], dg.Field]) -> None:
        self._make = make  # the attributes of the base class are made in `__getattr__`

    @cached_property
    @override
    def default_value_as_json_str(self) -> str:
        """The default as JSON, written once; Dagster asks for it five times."""
        return super().default_value_as_json_str

    def __getattr__(self, name: str) -> Any:
        """Make the field and return its attribute."""
        attributes = vars(self)
        make = None if name.startswith("__") else attributes.pop("_make", None)
        if make is not None:
            attributes.update(vars(make()))
            return getattr(self, name)
        msg = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(msg)


_SETTINGS: Final = execution_settings()
MISSING_TYPE: Final = choice(list(MISSING_RULES))


def mode_type(*, coroutines: bool) -> dg.Enum:
    """Return the type of the modes that this process knows, with or without those of coroutines."""
    names = [name for name, mode in MODES.items() if coroutines or not mode.only_coroutines]
    # Dagster knows types by their names, so registered modes are part of it.
    registered = [name for name in names if name not in PACKAGE_MODES]
    name = "_".join(["AsyncMode" if coroutines else "Mode", *registered])
    return dg.Enum(name, list(map(dg.EnumValue, names)))


def _left_empty(config: Any, description: str) -> dg.Field:
    """Return a field without a default, which Dagster would resolve for every node of a run."""
    return dg.Field(nullable(config), is_required=False, description=description)


def _setting_field(name: str, *, modes: dg.Enum | None = None) -> dg.Field:
    """Return the field of a setting with a short text: it is in the schema of every node."""
    setting = _SETTINGS[name]
    schema = {"type": setting.kind.json_type, "items": {"type": "string"}}
    chosen = {MODE: modes, MISSING: MISSING_TYPE}
    config = chosen.get(setting.kind) or config_type(schema)
    return _left_empty(config, f"{first_sentence(setting.description)} Empty: as defined.")


_CONDITION: Final = "A condition, such as `drop_reason == 'timeout' or result.score < 0.5`."

COMMON_FIELDS: Final[Mapping[str, dg.Field]] = {
    "limit": _left_empty(
        dg.IntSource,
        "Number of input records to preview; nothing is materialized. Empty: all records.",
    ),
    "resume": _left_empty(
        dg.ScalarUnion(str, shape({"records": dg.Field(str, description=_CONDITION)})),
        "`auto`: resume a run with the same options, code and input. `never`: start afresh. "
        "`across_code`: resume with other code. `failed_records`: retry them alone. "
        "`records: CONDITION`: redo the records that fulfil it. Empty: `auto`.",
    ),
    "try": _left_empty(
        dg.IntSource,
        "Number of processed records on which to try the present code; nothing is materialized. "
        "Empty: none.",
    ),
    **{
        name: _setting_field(name)
        for name, setting in _SETTINGS.items()
        if setting.launchpad and setting.kind is not MODE
    },
}


@cache
def _mode_field(coroutines: bool, _known: tuple[str, ...]) -> dg.Field:  # noqa: FBT001 - a key
    return _setting_field("concurrency_mode", modes=mode_type(coroutines=coroutines))


def config_field(operator: Operator) -> dg.Field:
    """Return the field of an operator's configuration: settings and ``params``.

    Its default has the options with their values of the pipeline; its type has no values.
    """
    use = operator.__dataops__
    modes = _mode_field(use.spec.asynchronous, tuple(MODES))
    fields = {**COMMON_FIELDS, "concurrency_mode": modes}
    if use.spec.batch:
        fields["batch_size"] = _setting_field("batch_size")
    params = shown_params(operator)
    text = f"{use.spec.reference}, and how it is run."
    if params is None:
        return dg.Field(shape(fields), description=text)
    config = shape({**fields, "params": params.field("the operator")})
    return dg.Field(config, default_value={"params": params.values}, description=text)
