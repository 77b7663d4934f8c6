"""Numbers that JSON cannot hold, in Arrow columns: NaN and the infinities."""

import math
from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


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
        return [finite(one, missing) for one in value]
    if isinstance(value, dict):
        return {key: finite(one, missing) for key, one in value.items()}
    return value
