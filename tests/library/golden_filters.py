"""Compare filters with decisions, reasons and signals that were observed on other tools."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from dagster_dataops import Drop, data

# The observed tool has other defaults than the operator.
_OTHER_DEFAULTS: Mapping[str, Callable[[dict], dict]] = {
    "WordCount": lambda given: given or {"preset": "nemo"},
    "SpecialCharacterRatio": lambda given: {**given, "character_set": "datajuicer"},
}


def difference(case: dict[str, Any]) -> str:
    name = case["operator"].partition(".")[2]
    options = _OTHER_DEFAULTS.get(name, dict)(case["options"])
    make, text = getattr(data.filters, name), case["input"]["text"]
    returned = make(**options).forward({"text": text})
    reason = returned.reason if isinstance(returned, Drop) else None
    tagged = make(**options, mode="tag").forward({"text": text})
    if tagged["drop_reason"] != reason or tagged["text"] != text:
        return f"mode tag says {tagged['drop_reason']!r}, mode drop {reason!r}"
    found = {"keep": reason is None, "reason": reason, "stats": tagged["stats"]}
    found["score"] = next(iter(tagged["stats"].values()))
    found["text"] = returned["text"] if reason is None else None
    expected = case["expected"]
    if "error" in expected:  # of the tool, on a text without anything to judge
        expected = {"keep": False, "reason": "empty"}
    kept = {"text": text} if reason is None else {}
    return "".join(
        f"{key}: {found[key]!r}, expected {value!r}; "
        for key, value in {**kept, **expected}.items()
        if not _equal(found[key], value)
    )


def _equal(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return all(_equal(found.get(key), value) for key, value in expected.items())
    if isinstance(expected, float):
        return bool(found == pytest.approx(expected, abs=1e-9))
    return bool(found == expected)
