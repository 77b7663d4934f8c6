"""The severity of a failed check: ``WARN`` or ``ERROR``."""

from typing import Literal, TypeAlias

import dagster as dg

from dagster_dataops.assets.metadata.metadata_keys import SEVERITY
from dagster_dataops.errors import ConfigurationError

Severity: TypeAlias = Literal["WARN", "ERROR"] | dg.AssetCheckSeverity


def severity_of(
    level: Severity | None, *, blocking: bool, default: Literal["WARN", "ERROR"]
) -> dg.AssetCheckSeverity:
    """Return the severity of a check.

    Args:
        level: The severity that the user gave.
        blocking: Whether a failed check stops the assets downstream. Dagster stops them only for
            ``ERROR``.
        default: The severity of a check that does not block, if the user gave none.

    Raises:
        ConfigurationError: The severity is invalid, or it is ``WARN`` for a blocking check.
    """
    if level is None:
        return dg.AssetCheckSeverity("ERROR" if blocking else default)
    try:
        severity = dg.AssetCheckSeverity(level)
    except ValueError:
        raise ConfigurationError("severity", level, "WARN or ERROR") from None
    if blocking and severity is dg.AssetCheckSeverity.WARN:
        raise ConfigurationError("severity", "WARN", "ERROR for a check that blocks")
    return severity


def severity_in(spec: dg.AssetCheckSpec, default: dg.AssetCheckSeverity) -> dg.AssetCheckSeverity:
    """Return the severity that the metadata of a spec names, else ``default``."""
    value = spec.metadata.get(SEVERITY)
    return default if value is None else dg.AssetCheckSeverity(value)
