"""The outcomes of the checks of a result, in a file beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from dagster_dataops.datasets.durable_files import storage, write_durably
from dagster_dataops.datasets.published_files import checks_of
from dagster_dataops.foundation.concurrency.file_lock import locked_file


class CheckOutcome(NamedTuple):
    """The outcome of a check."""

    severity: str  # ``ERROR`` or ``WARN``
    passed: bool


def note_outcomes(result: Path, fingerprint: str, outcomes: Mapping[str, CheckOutcome]) -> None:
    """Store outcomes of checks of a result beside it; the outcomes of its other checks stay.

    Several check steps of a result may run at once.

    Args:
        result: The path of the result.
        fingerprint: The digest of its bytes.
        outcomes: The outcomes by the name of the check.

    Raises:
        StorageError: The file cannot be locked or written.
    """
    if not fingerprint:
        return
    path = checks_of(result)
    lock = path.with_suffix(".lock")
    with storage(lock, "lock the file"), locked_file(lock):
        known = outcomes_of(result, fingerprint)
        if (merged := {**known, **outcomes}) != known:
            checks = {name: merged[name]._asdict() for name in sorted(merged)}
            content = {"fingerprint": fingerprint, "checks": checks}
            write_durably(path, orjson.dumps(content, option=orjson.OPT_INDENT_2))


def outcomes_of(result: Path, fingerprint: str) -> dict[str, CheckOutcome]:
    """Return the known outcomes of the checks of a result, by name.

    Args:
        result: The path of the result.
        fingerprint: The digest of its bytes. Outcomes for other bytes are left out.
    """
    try:
        content: dict[str, Any] = orjson.loads(checks_of(result).read_bytes())
        if content["fingerprint"] != fingerprint:
            return {}
        return {
            str(name): CheckOutcome(str(check["severity"]), check["passed"] is True)
            for name, check in content["checks"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # missing, or malformed
        return {}
