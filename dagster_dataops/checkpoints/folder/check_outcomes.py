"""The outcomes of the checks of a result, in a file beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from dagster_dataops.datasets.durable_files import write_durably
from dagster_dataops.datasets.published_files import RESULT


class CheckOutcome(NamedTuple):
    """The outcome of a check.

    Attributes:
        severity: ``ERROR`` or ``WARN``.
        passed: Whether it passed.
    """

    severity: str
    passed: bool


def note_outcomes(result: Path, fingerprint: str, outcomes: Mapping[str, CheckOutcome]) -> None:
    """Keep outcomes of checks of a result; those of its other checks stay.

    Args:
        result: The path of the result.
        fingerprint: The digest of its bytes.
        outcomes: The outcomes by the name of the check.

    Raises:
        StorageError: The file cannot be written.
    """
    if not fingerprint:
        return
    known = outcomes_of(result, fingerprint)
    if (merged := {**known, **outcomes}) != known:
        checks = {name: merged[name]._asdict() for name in sorted(merged)}
        content = {"fingerprint": fingerprint, "checks": checks}
        write_durably(_path(result), orjson.dumps(content, option=orjson.OPT_INDENT_2))


def outcomes_of(result: Path, fingerprint: str) -> dict[str, CheckOutcome]:
    """Return the known outcomes of the checks of a result, by name.

    Args:
        result: The path of the result.
        fingerprint: The digest of its bytes. Those of other bytes are not known.
    """
    try:
        content: dict[str, Any] = orjson.loads(_path(result).read_bytes())
        if content["fingerprint"] != fingerprint:
            return {}
        return {
            str(name): CheckOutcome(str(one["severity"]), one["passed"] is True)
            for name, one in content["checks"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # missing, or malformed
        return {}


_SUFFIX: Final = "_checks.json"


def _path(result: Path) -> Path:
    return result.with_name(f".{result.name.removesuffix(RESULT)}{_SUFFIX}")
