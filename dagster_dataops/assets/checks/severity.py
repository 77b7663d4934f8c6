"""How grave it is when a check does not pass: ``WARN`` or ``ERROR``."""

from typing import Literal, TypeAlias

import dagster as dg

from dagster_dataops.errors import ConfigurationError

Severity: TypeAlias = Literal["WARN", "ERROR"] | dg.AssetCheckSeverity


def severity_of(
    given: Severity | None, *, blocking: bool, default: Literal["WARN", "ERROR"]
) -> dg.AssetCheckSeverity:
    """Return the severity of a check.

    Args:
        given: As the user said it.
        blocking: Whether nothing downstream may run when the check did not pass; Dagster sees
            to that for ``ERROR`` alone.
        default: Where nothing was said about a check that does not block.

    Raises:
        ConfigurationError: It is none, or a check that blocks is to warn only.
    """
    if given is None:
        return dg.AssetCheckSeverity("ERROR" if blocking else default)
    try:
        severity = dg.AssetCheckSeverity(given)
    except ValueError:
        raise ConfigurationError("severity", given, "WARN or ERROR") from None
    if blocking and severity is dg.AssetCheckSeverity.WARN:
        raise ConfigurationError("severity", "WARN", "ERROR for a check that blocks")
    return severity
