"""The check ``blend_shares``."""

from typing import Any, Final

from dagster_dataops.assets.checks.declared_check import DeclaredCheck, check_kind, declared
from dagster_dataops.assets.checks.findings import Finding, unknown
from dagster_dataops.assets.checks.inspectors import Inspected
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.assets.metadata.leaf_metadata import share_of
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.quantities import counted, percentage

_DEVIATIONS: Final = 4.0  # standard deviations; random draws exceed them once in 16,000 times


@check_kind(
    {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": "Largest difference of a dataset's realised share from its wanted one.",
    }
)
def blend_shares(
    tolerance: float | None = None,
    *,
    name: str = "blend_shares",
    severity: Severity | None = None,
    blocking: bool = False,
) -> DeclaredCheck:
    """Check that each dataset of a metadataset gave the share of the samples that is wanted.

    Args:
        tolerance: The largest difference, in [0, 1]; ``None`` for that of random draws, four
            standard deviations.
        name: The name of the check.
        severity: Severity if the check fails; ``ERROR`` by default.
        blocking: Whether a failed check stops the assets downstream.
    """
    if tolerance is not None and not 0 <= tolerance <= 1:
        raise ConfigurationError("blend_shares", tolerance, "in [0, 1]")

    def finding(inspected: Inspected) -> Finding:
        leaves = inspected.manifest.leaves if inspected.manifest else []
        wanted = [leaf for leaf in leaves if leaf["wanted"] is not None]
        if not wanted:
            return unknown("The shares", "the result is no mixture, or it was edited")
        total = sum(leaf["samples"] for leaf in leaves)
        worst = max(wanted, key=lambda leaf: _excess(leaf, total, tolerance))
        passed = _excess(worst, total, tolerance) <= 0
        share = percentage(share_of(worst, total))
        text = (
            f"{worst['name']} gave {share} of {counted(total, 'samples')}, "
            f"wanted are {percentage(worst['wanted'])}."
        )
        return Finding(
            passed=passed,
            text=text
            if not passed
            else f"{counted(len(wanted), 'datasets')} gave the wanted share.",
            numbers={"samples": total},
        )

    allowed = "random draws allow" if tolerance is None else f"{percentage(tolerance)} points"
    text = f"No dataset's share differs from its wanted one by more than {allowed}."
    return declared(name, text, lambda: finding, severity, blocking=blocking)


def _excess(leaf: dict[str, Any], total: int, tolerance: float | None) -> float:
    """Return how far the share of a dataset is outside the tolerance."""
    wanted = leaf["wanted"]
    allowed = tolerance
    if allowed is None:
        allowed = _DEVIATIONS * (wanted * (1 - wanted) / max(total, 1)) ** 0.5 + 1e-9
    return float(abs(share_of(leaf, total) - wanted) - allowed)
