"""Compare operators that change a text, or write a value of it, with what other tools returned."""

from collections.abc import Mapping
from typing import Any

import pytest

from dagster_dataops import Drop, data

# The observed tool has other defaults than the operator.
_OTHER_DEFAULTS: Mapping[str, dict[str, Any]] = {
    "pii.RemoveEmails": {"compat": True},
    "pii.RemoveIPs": {"compat": True},
    "pii.Replace": {"compat": True},
    "text.NormalizePunctuation": {"compat": True},
    "text.RemoveMarkdown": {"compat": True},
}
_KEYS: Mapping[str, str] = {"score": "lang_score"}


def difference(case: dict[str, Any]) -> str:
    """Return how the operator differs from the case; the empty text if it does not.

    A page without a text is dropped; the other tools return an empty text, or none.
    """
    group, _, name = case["operator"].partition(".")
    options = {**case["options"], **_OTHER_DEFAULTS.get(case["operator"], {})}
    returned = getattr(getattr(data, group), name)(**options).forward(dict(case["input"]))
    found = {"text": None} if isinstance(returned, Drop) else returned
    return "".join(
        f"{key}: {found[_KEYS.get(key, key)]!r}, expected {value!r}; "
        for key, value in case["expected"].items()
        if not _equal(found[_KEYS.get(key, key)], value)
    )


def _equal(found: Any, expected: Any) -> bool:
    if isinstance(expected, float):
        return bool(found == pytest.approx(expected, abs=1e-3))
    return bool(found == expected) or (found is None and expected == "")
