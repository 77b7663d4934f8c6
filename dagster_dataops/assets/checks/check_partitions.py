"""Partitions of checks: Dagster keeps the last result of a check for each partition."""

import warnings
from collections.abc import Sequence

import dagster as dg

from dagster_dataops.assets.inputs.partitions import named


def partitions_of_checks(
    partitions_def: dg.PartitionsDefinition | None, policy: dg.BackfillPolicy | None
) -> dg.PartitionsDefinition | None:
    """Return the partitions of the checks of an asset; ``None`` for checks without partitions.

    In a run of several partitions, Dagster records a check for none of them. So checks have
    partitions only if each run has one partition.

    The policy ``None`` makes runs of one partition.
    """
    several = policy is not None and policy.max_partitions_per_run != 1
    return None if several else partitions_def


def with_partitions(
    spec: dg.AssetCheckSpec, partitions_def: dg.PartitionsDefinition | None
) -> dg.AssetCheckSpec:
    """Return the spec of a check with partitions."""
    if partitions_def is None or spec.partitions_def is not None:
        return spec
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return dg.AssetCheckSpec(
            spec.name,
            asset=spec.asset_key,
            description=spec.description,
            additional_deps=spec.additional_deps,
            blocking=spec.blocking,
            metadata=spec.metadata,
            automation_condition=spec.automation_condition,
            partitions_def=partitions_def,
        )


def partitions_text(what: str, partitions: Sequence[str | None], concerned: Sequence[bool]) -> str:
    """Return a sentence that names partitions of a run; empty if the run has only one.

    ``concerned`` tells for each of them whether it has ``what``, such as ``failed records``.
    """
    keys = [str(key) for key, has_some in zip(partitions, concerned, strict=False) if has_some]
    return f" Partitions with {what}: {named(keys)}." if keys and len(concerned) > 1 else ""
