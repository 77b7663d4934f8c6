"""The severity of a failed check: ``WARN`` or ``ERROR``."""

from typing import Literal, TypeAlias

import dagster as dg

from dagster_dataops.errors import ConfigurationError

Severity: TypeAlias = Literal["WARN", "ERROR"] | dg.AssetCheckSeverity


def severity_of(
    given: Severity | None, *, blocking: bool, default: Literal["WARN", "ERROR"]
) -> dg.AssetCheckSeverity:
    """Return the severity of a check.

    Args:
        given: The severity that the user gave.
        blocking: Whether a failed check stops the assets downstream. Dagster stops them only for
            ``ERROR``.
        default: The severity of a check that does not block, if the user gave none.

    Raises:
        ConfigurationError: The severity is invalid, or it is ``WARN`` for a blocking check.
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
