"""ErrorRateCheck: the asset check ``failed_records`` that every record operator has.

The operator's own step yields it from the counts that it has anyway, so it costs no second pass.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

import dagster as dg

from dagster_dataops.assets.checks.severity import Severity, severity_of
from dagster_dataops.assets.metadata.failure_summary import failure_groups, failure_table
from dagster_dataops.assets.metadata.metadata_prefix import METADATA_PREFIX
from dagster_dataops.assets.runtime.step_context import Context
from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.errors import ConfigurationError, PipelineDefinitionError
from dagster_dataops.graph.graph import OperatorGraph

FAILED_RECORDS: Final = "failed_records"
_HELD_UP: Final = (
    " What is downstream is held up. Repair the cause and retry the failed records alone (the job "
    "retry_failed_records_...), or allow for more in max_error_rate."
)
_MOST: Final = 0.5  # of the records may fail without holding up what is downstream


class RunOutcome(Protocol):
    """What the check looks at: a `RunReport`, or `Published`."""

    @property
    def manifest(self) -> Manifest:
        """Counts of the result."""
        ...

    @property
    def error_path(self) -> Path | None:
        """The file with the failed records, if any failed."""
        ...


@dataclass(frozen=True, slots=True)
class ErrorRateCheck:
    """How many records may fail.

    Attributes:
        max_error_rate: The share of input records that may fail, in [0, 1].
        severity: Of the check that did not pass, ``WARN`` or ``ERROR``. Left open, it is ``ERROR``
            if the check blocks; else ``WARN`` as long as no more than half of the records failed,
            and an ``ERROR`` that blocks if more did: what is downstream would be made of the
            smaller part of the data. ``WARN`` never blocks.
        blocking: Whether nothing downstream runs when it did not pass. The result is published
            all the same, so that its failed records can be retried alone.
    """

    max_error_rate: float = 0.0
    severity: Severity | None = None
    blocking: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.max_error_rate <= 1:
            raise ConfigurationError("max_error_rate", self.max_error_rate, "in [0, 1]")
        severity_of(self.severity, blocking=self.blocking, default="WARN")

    def spec(self, key: dg.AssetKey) -> dg.AssetCheckSpec:
        """Return the spec of the check on an operator's asset."""
        if self.max_error_rate:
            text = f"Passes if at most {_percent(self.max_error_rate)} of the records fail."
        else:
            text = "Passes if no record fails."
        return dg.AssetCheckSpec(FAILED_RECORDS, asset=key, description=text, blocking=self.blocks)

    @property
    def blocks(self) -> bool:
        """Whether it can hold up what is downstream."""
        return self.blocking or self.severity is None

    def severity_at(self, share: float) -> dg.AssetCheckSeverity:
        """Return how grave it is that ``share`` of the records failed, if that is too much."""
        grave: Literal["WARN", "ERROR"] = "ERROR" if share > _MOST else "WARN"
        return severity_of(self.severity, blocking=self.blocking, default=grave)


ErrorRate: TypeAlias = float | ErrorRateCheck | None
ErrorRates: TypeAlias = ErrorRate | Mapping[str, ErrorRate]


def error_rates_of(graph: OperatorGraph, given: ErrorRates) -> dict[str, ErrorRateCheck | None]:
    """Return the check of every node; ``None`` for one that has none.

    Dataset and stream operators have none: none of their input records fails alone.

    Args:
        graph: Of the pipeline.
        given: For all nodes, or by node; a node that is not named has the default check.

    Raises:
        PipelineDefinitionError: It names a node that is none.
        ConfigurationError: A share is not in [0, 1].
    """
    by_node: Mapping[str, ErrorRate]
    if isinstance(given, Mapping):
        check_nodes(graph, given, "max_error_rate")
        by_node = {name: given.get(name, ErrorRateCheck()) for name in graph.nodes}
    else:
        by_node = dict.fromkeys(graph.nodes, given)
    return {
        name: None if _whole(graph, name) else _check_of(rate) for name, rate in by_node.items()
    }


def check_nodes(
    graph: OperatorGraph, given: Mapping[str, Any], argument: str, *others: str
) -> None:
    """Refuse names in ``given`` that are neither nodes nor ``others``.

    Raises:
        PipelineDefinitionError: There are some.
    """
    known = [*graph.nodes, *others]
    for name in given:
        if name not in known:
            reason = f"{argument} names {name!r}; its nodes are {', '.join(known)}"
            raise PipelineDefinitionError(graph.name, reason)


def _whole(graph: OperatorGraph, name: str) -> bool:
    return graph.nodes[name].operator.__dataops__.spec.kind in {"dataset", "stream"}


def _check_of(rate: ErrorRate) -> ErrorRateCheck | None:
    return rate if rate is None or isinstance(rate, ErrorRateCheck) else ErrorRateCheck(rate)


def error_rate_specs(key: dg.AssetKey, rate: ErrorRateCheck | None) -> list[dg.AssetCheckSpec]:
    """Return the spec of the check, if there is one."""
    return [] if rate is None else [rate.spec(key)]


def error_rate_results(
    context: Context,
    key: dg.AssetKey,
    rate: ErrorRateCheck | None,
    outcomes: Sequence[RunOutcome],
) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of the check, if there is one and it was asked for; in an op it always is.

    Args:
        context: Of the operator's step.
        key: Of its asset.
        rate: What may fail.
        outcomes: Of its run; of each partition's, where it ran several.
    """
    if rate is not None and is_asked(context, key):
        yield error_rate_result(key, rate, outcomes)


def is_asked(context: Context, key: dg.AssetKey) -> bool:
    """Whether the step was launched for the check of an asset, among others."""
    if not isinstance(context, dg.AssetExecutionContext):
        return True
    return dg.AssetCheckKey(key, FAILED_RECORDS) in context.selected_asset_check_keys


def error_rate_result(
    key: dg.AssetKey, rate: ErrorRateCheck, outcomes: Sequence[RunOutcome]
) -> dg.AssetCheckResult:
    """Return the result of the check over all ``outcomes`` of an asset."""
    failed = sum(outcome.manifest.failed for outcome in outcomes)
    records = sum(outcome.manifest.rows_in for outcome in outcomes)
    share = failed / records if records else 0.0
    text = "No record failed."
    if failed:
        text = f"{failed:,} of {records:,} records failed, {_percent(share)}."
    severity = rate.severity_at(share)
    if share > rate.max_error_rate and rate.blocks and severity is dg.AssetCheckSeverity.ERROR:
        text += _HELD_UP
    return dg.AssetCheckResult(
        passed=share <= rate.max_error_rate,
        asset_key=key,
        check_name=FAILED_RECORDS,
        severity=severity,
        description=text,
        metadata={
            f"{METADATA_PREFIX}/failed_share": share,
            f"{METADATA_PREFIX}/max_error_rate": rate.max_error_rate,
            f"{METADATA_PREFIX}/rows_failed": failed,
            f"{METADATA_PREFIX}/rows_in": records,
            **_told(outcomes),
        },
    )


def _told(outcomes: Sequence[RunOutcome]) -> dict[str, Any]:
    paths = [outcome.error_path for outcome in outcomes if outcome.error_path is not None]
    if not paths:
        return {}
    told: dict[str, Any] = {f"{METADATA_PREFIX}/failures": failure_table(failure_groups(paths))}
    if len(paths) == 1:
        told[f"{METADATA_PREFIX}/error_path"] = dg.MetadataValue.path(paths[0])
    else:
        told[f"{METADATA_PREFIX}/error_paths"] = dg.MetadataValue.json(list(map(str, paths)))
    return told


def _percent(share: float) -> str:
    """Return a share as text; never ``0 %`` of one that is more than nothing."""
    return f"{100 * share:.3g} %"
