"""The config schema of a node: the fields against which Dagster checks a launch.

It is the schema of the node's Config class. Creating a class takes milliseconds, and most nodes of
a large pipeline differ only in option values. So all uses of an operator share the fields of one
class, with the defaults replaced by the values of each node.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import dagster as dg

from dagster_dataops.assets.launchpad.operator_config import (
    OperatorConfig,
    SettingsConfig,
    config_type_of,
)
from dagster_dataops.assets.launchpad.shown_values import is_showable
from dagster_dataops.graph.operator_node import OperatorNode


class LazyField(dg.Field):
    """Becomes the field that ``make`` returns, on first access.

    Args:
        make: Returns the field; called once.
    """

    def __init__(self, make: Callable[[], dg.Field]) -> None:
        self._make = make  # the attributes of the base class are made in `__getattr__`

    def __getattr__(self, name: str) -> Any:
        """Make the field and return its attribute."""
        own = vars(self)
        make = None if name.startswith("__") else own.pop("_make", None)
        if make is not None:
            own.update(vars(make()))
            return getattr(self, name)
        msg = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(msg)


Schema: TypeAlias = Mapping[str, dg.Field]

_PARAMS: Final = "params"
_PLAIN: Final = (str, int, float, bool)
_MOST: Final = 4096
# By operator and settings. The value holds the operator's spec, so that its id is not reused.
_known: dict[tuple[Any, ...], tuple[object, Mapping[str, Any], Schema]] = {}
_fields: dict[int, tuple[Schema, dg.Field]] = {}


def config_schema(node: OperatorNode) -> Schema:
    """Return the fields of a node's configuration: settings and ``params``."""
    invocation = node.operator.__dataops__
    kinds = tuple((name, type(value)) for name, value in invocation.options.items())
    use = (id(invocation.spec), invocation.settings, kinds)
    if use not in _known:
        if len(_known) >= _MOST:
            _known.clear()
        _known[use] = (invocation.spec, invocation.options, _schema_of(node))
    _, options, schema = _known[use]
    shared = _with_options(schema, options, invocation.options)
    return _schema_of(node) if shared is None else shared


def field_of(schema: Schema) -> dg.Field:
    """Return one field for the whole schema, so that Dagster creates it once and not per op."""
    known = _fields.get(id(schema))
    if known is None or known[0] is not schema:
        if len(_fields) >= _MOST:
            _fields.clear()
        known = _fields[id(schema)] = (schema, dg.Field(dict(schema)))
    return known[1]


def pipeline_schema(nodes: Sequence[tuple[OperatorNode, Schema]]) -> Schema:
    """Return the fields of several nodes in one step, by node name."""
    return {
        node.name: dg.Field(dict(schema), description=_description(node)) for node, schema in nodes
    }


def config_of(node: OperatorNode, schema: Schema, given: Mapping[str, Any]) -> OperatorConfig:
    """Return the configuration of a launch as an instance of the Config class of its node.

    Most launches leave ``params`` unchanged. They do not need the Config class, so it is not
    created.
    """
    common = {name: value for name, value in given.items() if name != _PARAMS}
    common.setdefault("ignore_errors", node.operator.__dataops__.resolved.ignore_errors)
    if (
        given.get(_PARAMS) in (None, _params_in(schema))
        and common.get("concurrency_mode") != "async"
    ):
        hashable = not isinstance(common.get("retry_on"), list)
        return _known_config(tuple(common.items())) if hashable else SettingsConfig(**common)
    return config_type_of(node)(**given)


@lru_cache
def _known_config(given: tuple[tuple[str, Any], ...]) -> OperatorConfig:
    """Return a shared config; creating one takes half a millisecond."""
    return SettingsConfig(**dict(given))


def _params_in(schema: Schema) -> object:
    params = schema.get(_PARAMS)
    return params.default_value if params is not None and params.default_provided else None


def _schema_of(node: OperatorNode) -> Schema:
    """Return the fields of a node's Config class.

    A setting whose default is empty gets no default: Dagster would resolve it for every node of
    every run.
    """
    fields = config_type_of(node).to_fields_dict()
    return {name: _left_empty(field) or field for name, field in fields.items()}


def _left_empty(field: dg.Field) -> dg.Field | None:
    if not field.default_provided or field.default_value is not None:
        return None
    return dg.Field(field.config_type, is_required=False, description=field.description)


def _description(node: OperatorNode) -> str:
    return f"{node.operator.__dataops__.spec.reference}, and how it is run."


def _with_options(
    schema: Schema, known: Mapping[str, Any], options: Mapping[str, Any]
) -> Schema | None:
    """Return ``schema`` with other defaults, ``None`` if the node needs its own schema."""
    changed = {name: value for name, value in options.items() if not _same(value, known[name])}
    if not changed:
        return schema
    params = schema.get(_PARAMS)
    fields: dict[str, dg.Field] = dict(getattr(params and params.config_type, "fields", {}))
    for name, value in changed.items():
        field = fields.get(name)
        if not _is_plain(value) or not _is_plain(known[name]):
            return None
        if field is not None:
            if not field.default_provided or not _same(field.default_value, known[name]):
                return None
            fields[name] = _with_default(field, value)
    if params is None:
        return schema
    return {**schema, _PARAMS: dg.Field(fields, description=params.description)}


def _with_default(field: dg.Field, value: object) -> dg.Field:
    return dg.Field(
        field.config_type,
        default_value=value,
        is_required=False,
        description=field.description,
    )


def _is_plain(value: object) -> bool:
    return type(value) in _PLAIN and is_showable(value)


def _same(one: object, other: object) -> bool:
    if one is other:
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # noqa: BLE001 - comparing values such as arrays raises
        return False
