"""The check ``max_dropped``."""

from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.assets.checks.declared_check import DeclaredCheck
from dagster_dataops.assets.checks.findings import Finding
from dagster_dataops.assets.checks.inspectors import Inspected, Inspector
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.errors import ConfigurationError


class MaxDropped(DeclaredCheck, Inspector):
    """Check that at most ``share``, in [0, 1], of the input records emitted nothing.

    Failed records do not count; the check ``failed_records`` is for them.
    """

    kind = "max_dropped"
    yaml: ClassVar[Mapping[str, Any]] = {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": "Largest share of the input records that may emit nothing.",
    }

    def __init__(
        self,
        share: float,
        *,
        name: str = "max_dropped",
        severity: Severity | None = None,
        blocking: bool = False,
    ) -> None:
        if not 0 <= share <= 1:
            raise ConfigurationError("max_dropped", share, "in [0, 1]")
        text = f"At most {100 * share:.3g} % of the input records are dropped."
        super().__init__(name, text, severity, blocking=blocking)
        self.share = share

    @override
    def inspector(self) -> Inspector:
        return self

    @override
    def finding(self, inspected: Inspected) -> Finding:
        manifest = inspected.manifest
        if manifest is None:
            text = "How many records were dropped is unknown: the result was edited since."
            return Finding(passed=False, text=text)
        share = manifest.dropped / manifest.rows_in if manifest.rows_in else 0.0
        return Finding(
            passed=share <= self.share,
            text=f"{manifest.dropped:,} of {manifest.rows_in:,} records dropped.",
            numbers={"rows_dropped": manifest.dropped, "dropped_share": share},
        )
