"""Convert items to JSON, for states that must hold items that were read but not yet yielded.

Beyond JSON, these are supported: tuples, bytes, NaN, infinities, and dicts with keys that are not
strings. Each becomes an object with one key, for example ``{"~tuple": [...]}``. All other types
are refused; nothing is pickled.
"""

import base64
import math
from typing import Any, Final

from dagster_dataops.errors import StreamStateError

_TAG: Final = "~"
_PLAIN: Final = frozenset({str, int, bool, type(None)})


def to_json(value: Any) -> Any:  # noqa: PLR0911 - one return per type
    """Return ``value`` as a JSON value.

    Raises:
        StreamStateError: It is or holds a value of an unsupported type.
    """
    kind = type(value)
    if kind in _PLAIN or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [to_json(item) for item in value]
    if kind is dict:
        return _dict_to_json(value)
    if kind is tuple:
        return {"~tuple": [to_json(item) for item in value]}
    if kind is float:
        return {"~float": repr(value)}
    if kind is not bytes:
        raise _unsupported(kind)
    return {"~bytes": base64.b64encode(value).decode()}


def _unsupported(kind: type) -> StreamStateError:
    return StreamStateError(
        f"an item held in the state is or contains a {kind.__name__}, which JSON cannot hold; "
        "convert it to texts, numbers, lists, tuples or dicts before the stage that holds it"
    )


def _dict_to_json(value: dict[Any, Any]) -> Any:
    plain = all(type(key) is str for key in value)
    if plain and not (len(value) == 1 and next(iter(value)).startswith(_TAG)):
        return {key: to_json(item) for key, item in value.items()}
    return {"~dict": [[to_json(key), to_json(item)] for key, item in value.items()]}


def from_json(value: Any) -> Any:
    """Return the value that `to_json` converted to ``value``.

    Raises:
        StreamStateError: `to_json` never returns ``value``.
    """
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((tag, content),) = value.items()
        if tag.startswith(_TAG):
            return _from_tag(tag, content)
    return {key: from_json(item) for key, item in value.items()}


def _from_tag(tag: str, content: Any) -> Any:
    try:
        match tag:
            case "~tuple":
                return tuple(from_json(item) for item in content)
            case "~dict":
                return {from_json(key): from_json(item) for key, item in content}
            case "~bytes":
                return base64.b64decode(content, validate=True)
            case "~float":
                return float(content)
    except (TypeError, ValueError) as error:
        msg = f"an item that it holds is damaged: {error}"
        raise StreamStateError(msg) from error
    msg = f"it holds an item of the unknown kind {tag!r}"
    raise StreamStateError(msg)
