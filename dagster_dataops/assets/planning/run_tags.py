"""Tags: those of runs and steps that a user gives, and the tag of an asset's operator."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from dagster_dataops.assets.metadata.metadata_keys import OPERATOR
from dagster_dataops.errors import ConfigurationError

OPERATOR_TAG: Final = OPERATOR
_MOST: Final = 63  # characters of each part of a key, and of the value of an asset's tag
_KEY: Final = re.compile(r"([A-Za-z0-9_.-]{1,63}/)?[A-Za-z0-9_.-]{1,63}")
_NOT_IN_VALUES: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_KEYS: Final = (
    "a mapping whose keys are texts of at most 63 letters, digits, '_', '-' and '.', with another "
    "such text and '/' before it at will"
)


def run_tags(setting: str, tags: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return the tags of runs that a user gives.

    Raises:
        ConfigurationError: A key is not one of Dagster's, or a value is not a text.
    """
    if tags is None:
        return None
    if not _has_keys(tags) or not all(isinstance(value, str) for value in tags.values()):
        raise ConfigurationError(setting, tags, f"{_KEYS}, and whose values are texts")
    return dict(tags)


def step_tags(setting: str, tags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tags of a step that a user gives; arguments as `run_tags`.

    Raises:
        ConfigurationError: A key is not one of Dagster's, or a value is not a JSON value.
    """
    if not _has_keys(tags) or not all(map(_is_json, tags.values())):
        raise ConfigurationError(setting, tags, f"{_KEYS}, and whose values are JSON values")
    return dict(tags)


def _has_keys(tags: object) -> bool:
    return isinstance(tags, Mapping) and all(
        isinstance(key, str) and _KEY.fullmatch(key) for key in tags
    )


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError, RecursionError):
        return False


def is_whole_tag(reference: str) -> bool:
    """Return whether the tag of an operator holds its name unchanged."""
    return operator_tag(reference)[OPERATOR_TAG] == reference.removeprefix("data.")


def operator_tag(reference: str) -> dict[str, str]:
    """Return the tag by which selections find the assets of an operator: ``dedup.Exact``.

    Each run of other characters than letters, digits, ``_``, ``-`` and ``.`` becomes one ``_``. Of
    a longer reference the last characters are kept, after a digest of all.
    """
    value = _NOT_IN_VALUES.sub("_", reference.removeprefix("data."))
    if len(value) > _MOST:
        digest = hashlib.blake2b(reference.encode(), digest_size=4).hexdigest()
        value = f"{digest}.{value[len(digest) + 1 - _MOST :]}"
    return {OPERATOR_TAG: value}
