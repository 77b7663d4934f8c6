"""The canonical form of values: equal values have equal bytes."""

import json

import orjson


def canonical(value: object) -> bytes:
    """Return a value of a record as JSON with sorted keys, also with lone surrogates in texts."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return json.dumps(value, sort_keys=True).encode()
