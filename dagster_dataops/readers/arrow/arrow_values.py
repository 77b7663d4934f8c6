"""Convert the values of Arrow columns to JSON.

 numbers, booleans, texts, null   unchanged
 dates, times, timestamps         ISO 8601, such as 2026-01-31T12:00:00.000000001+01:00
 decimals                         texts of their digits, because floats would lose some
 bytes                            base64 texts
 UUIDs                            texts
 JSON                             texts, or the values that they say
 lists, structs                   lists, objects
 maps                             objects; lists of [key, value] if keys are not texts
 durations, intervals, unions     refused with the name of the column

Python's time types cannot hold nanoseconds, so these columns are read as integers.
"""

import base64
import math
import uuid
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from dagster_dataops.records import parse

Convert: TypeAlias = Callable[[Any], Any]

ConversionOf: TypeAlias = Callable[[Any], "Conversion"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Conversion(NamedTuple):
    """How to convert the values of one type to JSON.

    Attributes:
        stored: The Arrow type to cast to first.
        convert: Converts a value other than null; ``None`` if no conversion is needed.
    """

    stored: pa.DataType
    convert: Convert | None = None


def conversion_of(kind: pa.DataType, *, parse_json: bool = False) -> Conversion:
    """Return the conversion for the values of a type.

    With ``parse_json``, values of Arrow's JSON type become what they say; else they stay texts.
    """
    of = partial(conversion_of, parse_json=parse_json)
    if isinstance(kind, pa.BaseExtensionType):
        if parse_json and kind.extension_name == "arrow.json":
            return Conversion(kind.storage_type, parse)
        return _extended(kind, of)
    if pa.types.is_dictionary(kind):
        inside = of(kind.value_type)
        return Conversion(kind) if inside.convert is None else inside
    if pa.types.is_nested(kind):
        return _nested(kind, of)
    for matches, make in _CONVERSIONS:
        if matches(kind):
            return make(kind)
    raise TypeError(str(kind))


def _extended(kind: Any, of: ConversionOf) -> Conversion:
    if kind.extension_name == "arrow.uuid":
        return Conversion(kind.storage_type, lambda value: str(uuid.UUID(bytes=value)))
    return of(kind.storage_type)


def _time(kind: pa.DataType) -> Conversion:
    if pa.types.is_date(kind):
        return Conversion(kind, lambda value: value.isoformat())
    if not (pa.types.is_timestamp(kind) or pa.types.is_time(kind)):
        raise TypeError(str(kind))
    if kind.unit != "ns":
        return Conversion(kind, lambda value: value.isoformat())
    if pa.types.is_time(kind):
        return Conversion(pa.int64(), lambda value: _instant(value, None).partition("T")[2])
    zone = None if kind.tz is None else pa.lib.string_to_tzinfo(kind.tz)
    return Conversion(pa.int64(), lambda value: _instant(value, zone))


def _instant(nanoseconds: int, zone: Any) -> str:
    """Return nanoseconds since 1970 as ISO 8601 text; without time zone if ``zone`` is ``None``."""
    microseconds, rest = divmod(nanoseconds, 1000)
    time = (_EPOCH + timedelta(microseconds=microseconds)).astimezone(zone or UTC)
    if zone is None:
        time = time.replace(tzinfo=None)
    if not rest:
        return time.isoformat()
    text = time.isoformat(timespec="microseconds")
    point = text.index(".") + 7
    return f"{text[:point]}{rest:03d}{text[point:]}"


def _nested(kind: Any, of: ConversionOf) -> Conversion:
    if pa.types.is_struct(kind):
        return _struct(kind, of)
    if pa.types.is_map(kind):
        return _map(kind, of)
    if pa.types.is_union(kind) or not hasattr(kind, "value_type"):
        raise TypeError(str(kind))
    inside = of(kind.value_type)
    if inside.convert is None:
        return Conversion(kind)
    make = nullable(inside.convert)
    return Conversion(pa.large_list(inside.stored), lambda values: list(map(make, values)))


def _struct(kind: Any, of: ConversionOf) -> Conversion:
    forms = {field.name: of(field.type) for field in kind}
    stored = pa.struct([pa.field(name, form.stored) for name, form in forms.items()])
    makes = {name: nullable(form.convert) for name, form in forms.items() if form.convert}
    if not makes:
        return Conversion(kind)

    def convert(value: dict[str, Any]) -> dict[str, Any]:
        return value | {name: make(value[name]) for name, make in makes.items()}

    return Conversion(stored, convert)


def _map(kind: Any, of: ConversionOf) -> Conversion:
    key, item = of(kind.key_type), of(kind.item_type)
    make_key, make_item = nullable(key.convert), nullable(item.convert)
    has_texts = pa.types.is_string(kind.key_type) or pa.types.is_large_string(kind.key_type)

    def convert(pairs: list[tuple[Any, Any]]) -> Any:
        converted = [[make_key(name), make_item(other)] for name, other in pairs]
        if not has_texts:
            return converted
        merged = dict(converted)
        if len(merged) < len(converted):
            msg = "a map contains one key twice"
            raise ValueError(msg)
        return merged

    return Conversion(pa.map_(key.stored, item.stored), convert)


def nullable(convert: Convert | None) -> Convert:
    """Return a conversion that leaves null unchanged."""
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def _digits(kind: pa.DataType) -> Conversion:
    return Conversion(kind, lambda value: format(value, "f"))


def _bytes(kind: pa.DataType) -> Conversion:
    return Conversion(kind, lambda value: base64.b64encode(value).decode())


_CONVERSIONS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Conversion]], ...]] = (
    (pa.types.is_temporal, _time),
    (pa.types.is_decimal, _digits),
    (pa.types.is_null, Conversion),
    (pa.types.is_boolean, Conversion),
    (pa.types.is_integer, Conversion),
    (pa.types.is_floating, Conversion),
    (pa.types.is_string, Conversion),
    (pa.types.is_large_string, Conversion),
    (pa.types.is_string_view, Conversion),
    (pa.types.is_binary, _bytes),
    (pa.types.is_large_binary, _bytes),
    (pa.types.is_binary_view, _bytes),
    (pa.types.is_fixed_size_binary, _bytes),
)


def may_hold_floats(kind: pa.DataType) -> bool:
    """Return whether values of a type may hold floats, at any depth."""
    if isinstance(kind, pa.BaseExtensionType):
        return may_hold_floats(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return may_hold_floats(kind.value_type)
    if pa.types.is_nested(kind):
        return any(may_hold_floats(kind.field(at).type) for at in range(kind.num_fields))
    return bool(pa.types.is_floating(kind))


def is_finite(column: Any) -> bool:
    """Return whether all numbers of a column are finite; ``False`` if that is not known."""
    kind = column.type
    if not may_hold_floats(kind):
        return True
    if pa.types.is_floating(kind):
        return pc.all(pc.is_finite(column)).as_py() is not False
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return is_finite(pc.list_flatten(column))
    if pa.types.is_struct(kind):
        return all(is_finite(pc.struct_field(column, [at])) for at in range(kind.num_fields))
    return False


def finite(value: Any, missing: Collection[str]) -> Any:
    """Return a value with ``None`` for numbers that JSON cannot hold.

    Args:
        value: A converted value.
        missing: The numbers to replace, as lower-case texts: ``nan``, ``inf``, ``-inf``.

    Raises:
        ValueError: Another one is in it.
    """
    if isinstance(value, float) and not math.isfinite(value):
        if str(value) in missing:
            return None
        msg = f"{value} is not in JSON; missing=['{value}'] makes it null"
        raise ValueError(msg)
    if isinstance(value, list):
        return [finite(item, missing) for item in value]
    if isinstance(value, dict):
        return {key: finite(item, missing) for key, item in value.items()}
    return value
