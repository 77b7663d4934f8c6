"""OptionType: the launchpad form of a Python type, and the conversion back.

pydantic gives the JSON form of most types, and Dagster's config type follows from its JSON schema.
Dagster cannot check unions, ranges and dates at launch. `OptionType.load` checks them when the step
begins. Options of a type without a JSON form are not shown.
"""

import functools
import types
import typing
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Final

import pydantic
from pydantic import TypeAdapter

from dagster_dataops.assets.launchpad.json_schema_types import config_type, is_choice, phrase
from dagster_dataops.operators.options.signature import REQUIRED

_LAZY: Final = (Iterable, Iterator, Collection)  # pydantic would make one-time iterators


@dataclass(frozen=True, slots=True)
class OptionType:
    """The form of one Python type in the launchpad.

    Attributes:
        config: Type of Dagster's config, `ANY` if none fits.
        allowed: Allowed values in words, if ``config`` does not name them.
        description: Text of ``Annotated``.
        schema: JSON schema of the type.
    """

    config: Any
    allowed: str
    description: str
    schema: Mapping[str, Any]
    _adapter: TypeAdapter[Any]

    def dump(self, value: Any) -> Any:
        """Return the JSON form of ``value``.

        Raises:
            ValueError: The value does not have this type, or has no JSON form.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of types that pydantic knows in part
            return self._adapter.dump_python(value, mode="json", warnings="error", by_alias=True)

    def load(self, value: Any) -> Any:
        """Return the value whose JSON form is ``value``.

        Raises:
            ValueError: There is none; the message has the reason.
        """
        try:
            return self._adapter.validate_python(value, by_alias=True)
        except pydantic.ValidationError as error:
            raise ValueError(_in_words(error)) from None


def option_type(annotation: Any) -> OptionType | None:
    """Return the launchpad form of an annotation, ``None`` if its values have no JSON form."""
    try:
        return _remembered(annotation)
    except TypeError:  # it has no hash, such as Annotated[int, []]
        return _option_type(annotation)


def _option_type(annotation: Any) -> OptionType | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adapter = TypeAdapter[Any](_readable(annotation))
            schema = adapter.json_schema()
            config = config_type(schema)
            allowed = "" if is_choice(config) else phrase(schema)
    except Exception:  # noqa: BLE001 - methods of the user's class run here
        return None
    return OptionType(config, allowed, _description_in(annotation), schema, adapter)


_remembered = functools.lru_cache(maxsize=1024)(_option_type)


def _readable(annotation: Any) -> Any:
    """Return ``annotation`` with member names in place of enums and lists for iterables."""
    if annotation is REQUIRED or isinstance(annotation, (str, typing.ForwardRef)):
        return Any
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _by_name(annotation)
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in _LAZY or origin in _LAZY:
        members, origin = members or (Any,), list
    return _composed(annotation, origin, members)


def _composed(annotation: Any, origin: Any, members: tuple[Any, ...]) -> Any:
    if origin is Annotated:
        return Annotated[(_readable(members[0]), *members[1:])]
    if origin in {typing.Union, types.UnionType}:
        return typing.Union[tuple(map(_readable, members))]  # noqa: UP007 - made at run time
    if origin in {list, set, frozenset, tuple, dict} and members:
        return origin[tuple(m if m is ... else _readable(m) for m in members)]
    return annotation


def _by_name(kind: type[Enum]) -> Any:
    names = list(kind.__members__)

    def load(value: Any) -> Enum:
        if isinstance(value, kind):
            return value
        if value not in names:
            msg = f"must be one of {', '.join(names)}"
            raise ValueError(msg)
        return kind[value]

    def dump(member: Enum) -> str:
        return kind(member).name

    return Annotated[
        kind,
        pydantic.PlainValidator(load),
        pydantic.PlainSerializer(dump),
        pydantic.WithJsonSchema({"enum": names, "type": "string"}),
    ]


def _description_in(annotation: Any) -> str:
    for item in getattr(annotation, "__metadata__", ()):
        if isinstance(item, str):
            return item
        text = getattr(item, "documentation", None) or getattr(item, "description", None)
        if isinstance(text, str):  # typing_extensions.Doc, pydantic.Field
            return text
    return ""


def _in_words(error: pydantic.ValidationError) -> str:
    messages: dict[str, None] = {}
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        message = fault["msg"].removeprefix("Value error, ")
        at = ".".join(str(part) for part in fault["loc"])
        messages[f"{at}: {message}" if at else message] = None
    return "; ".join(messages)
