"""The check ``missing_aux``."""

from collections import Counter
from typing import Final

from dagster_dataops.assets.checks.declared_check import DeclaredCheck, check_kind, declared
from dagster_dataops.assets.checks.findings import Finding, unknown
from dagster_dataops.assets.checks.inspectors import Inspected
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.publish.error_rows import parse_error_row
from dagster_dataops.errors import AuxFileMissingError, ConfigurationError
from dagster_dataops.foundation.quantities import counted

_MISSING: Final = AuxFileMissingError.__name__


@check_kind(
    {
        "type": "integer",
        "minimum": 0,
        "description": "Most records that may fail because an auxiliary file is missing.",
    }
)
def missing_aux(
    max: int = 0,  # noqa: A002 - a plain word for the user
    *,
    name: str = "missing_aux",
    severity: Severity | None = None,
    blocking: bool = False,
) -> DeclaredCheck:
    """Check that at most ``max`` records failed because a file of a store is missing.

    The failed records of a stream are known only if it has ``on_error="quarantine"``.
    """
    if max < 0:
        raise ConfigurationError("missing_aux", max, "at least 0")

    def finding(inspected: Inspected) -> Finding:
        if inspected.manifest is None:
            return unknown("The failed records")
        messages = _messages(inspected.manifest, NodeFolder.of_result(inspected.dataset))
        count = messages.total()
        text = f"{counted(count, 'records')} failed because a file is missing"
        if count:
            text += f", most often: {messages.most_common(1)[0][0]}"
        return Finding(passed=count <= max, text=f"{text}.", numbers={"missing_files": count})

    text = f"At most {counted(max, 'records')} may fail because a file of a store is missing."
    return declared(name, text, lambda: finding, severity, blocking=blocking)


def _messages(manifest: Manifest, folder: NodeFolder) -> Counter[str]:
    """Return how often each message of a missing file is in the error file."""
    path = manifest.error_file(folder)
    messages: Counter[str] = Counter()
    if path is None:
        return messages
    with path.open("rb") as lines:
        for line in lines:
            if _MISSING.encode() in line:
                row = parse_error_row(line)
                if row["exception"] == _MISSING:
                    messages[row["message"]] += 1
    return messages
