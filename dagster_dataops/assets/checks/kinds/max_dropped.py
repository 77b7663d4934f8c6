"""The check ``max_dropped``."""

from dagster_dataops.assets.checks.declared_check import DeclaredCheck, check_kind, declared
from dagster_dataops.assets.checks.findings import Finding, unknown
from dagster_dataops.assets.checks.inspectors import Inspected
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.quantities import counted, percentage


@check_kind(
    {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": "Largest share of the input records that may emit nothing.",
    }
)
def max_dropped(
    share: float,
    *,
    name: str = "max_dropped",
    severity: Severity | None = None,
    blocking: bool = False,
) -> DeclaredCheck:
    """Check that at most ``share``, in [0, 1], of the input records emitted nothing.

    Failed records do not count as dropped; see the check ``failed_records``.
    """
    if not 0 <= share <= 1:
        raise ConfigurationError("max_dropped", share, "in [0, 1]")

    def finding(inspected: Inspected) -> Finding:
        manifest = inspected.manifest
        if manifest is None:
            return unknown("The dropped records")
        if manifest.new_records:
            return Finding(passed=True, text=f"{manifest.made_text}; none is dropped.")
        dropped = manifest.dropped / manifest.rows_in if manifest.rows_in else 0.0
        return Finding(
            passed=dropped <= share,
            text=f"{manifest.dropped:,} of {counted(manifest.rows_in, 'records')} dropped.",
            numbers={"rows_dropped": manifest.dropped, "dropped_share": dropped},
        )

    text = f"At most {percentage(share)} of the input records are dropped."
    return declared(name, text, lambda: finding, severity, blocking=blocking)
