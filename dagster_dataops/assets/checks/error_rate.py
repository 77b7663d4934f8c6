"""ErrorRateCheck: the asset check ``failed_records``, which every record operator has.

The operator's step yields the result from the counts of the run, without reading the records again.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import dagster as dg

from dagster_dataops.assets.checks.check_partitions import partitions_text
from dagster_dataops.assets.checks.severity import Severity, severity_in, severity_of
from dagster_dataops.assets.metadata.failure_summary import failure_groups, failure_table
from dagster_dataops.assets.metadata.metadata_keys import (
    ERROR_PATH,
    ERROR_PATHS,
    FAILED_SHARE,
    FAILURES,
    ROWS_FAILED,
)
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.errors import ConfigurationError, PipelineDefinitionError
from dagster_dataops.foundation.quantities import counted, percentage
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.pipelines.graph.graph import OperatorGraph

FAILED_RECORDS: Final = "failed_records"
_HELD_UP: Final = (
    " The assets downstream are stopped. Repair the cause and retry the failed records alone (the "
    "job ..._retry_failed_records, or a run with the tag dagster_dataops/retry_failed_records: "
    "true), or raise max_error_rate."
)
_MAX_WARN_SHARE: Final = 0.5  # a larger share of failed records is an error that blocks
RunResult: TypeAlias = tuple[Manifest, Path | None]  # the counts, and the file of failed records


@dataclass(frozen=True, slots=True)
class ErrorRateCheck:
    """The share of records that may fail.

    Attributes:
        max_error_rate: The largest share of input records that may fail, in [0, 1].
        severity: Severity if the check fails, ``WARN`` or ``ERROR``; ``WARN`` never blocks. The
            default is ``ERROR`` if the check blocks. Otherwise the default is ``WARN`` if at most
            half of the records failed, and an ``ERROR`` that blocks if more failed, because the
            assets downstream would then hold less than half of the data.
        blocking: Whether a failed check stops the assets downstream. The result is published in
            any case, so that its failed records can be retried alone.
    """

    max_error_rate: float = 0.0
    severity: Severity | None = None
    blocking: bool = False

    def __post_init__(self) -> None:
        share: object = self.max_error_rate
        if not isinstance(share, (int, float)) or not 0 <= share <= 1:
            raise ConfigurationError("max_error_rate", share, "in [0, 1]")
        severity_of(self.severity, blocking=self.blocking, default="WARN")

    def spec(self, key: dg.AssetKey) -> dg.AssetCheckSpec:
        """Return the spec of the check for an operator's asset."""
        if self.max_error_rate:
            text = f"Passes if at most {percentage(self.max_error_rate)} of the records fail."
        else:
            text = "Passes if no record fails."
        if self.blocking:
            text += " Blocks the assets downstream if it fails."
        elif self.blocks:
            text += f" Blocks if over {percentage(_MAX_WARN_SHARE)} fail."
        return dg.AssetCheckSpec(FAILED_RECORDS, asset=key, description=text, blocking=self.blocks)

    @property
    def fixed_severity(self) -> dg.AssetCheckSeverity | None:
        """The severity of every failure; ``None`` if it depends on the share of failed records."""
        if self.severity is None and not self.blocking:
            return None
        return severity_of(self.severity, blocking=self.blocking, default="ERROR")

    @property
    def blocks(self) -> bool:
        """Whether the check can stop the assets downstream."""
        return self.blocking or self.severity is None

    def severity_at(self, share: float) -> dg.AssetCheckSeverity:
        """Return the severity if the share ``share`` of the records failed, above the limit."""
        default: Literal["WARN", "ERROR"] = "ERROR" if share > _MAX_WARN_SHARE else "WARN"
        return severity_of(self.severity, blocking=self.blocking, default=default)


ErrorRate: TypeAlias = float | ErrorRateCheck | None
ErrorRates: TypeAlias = ErrorRate | Mapping[str, ErrorRate]


def error_rates_of(graph: OperatorGraph, rates: ErrorRates) -> dict[str, ErrorRateCheck | None]:
    """Map every node to its check, or to ``None``; nodes without a rate have the default check.

    Operators that take whole inputs have no check: their records do not fail one by one.

    Raises:
        PipelineDefinitionError: A name is not a node.
        ConfigurationError: A share is not in [0, 1].
    """
    by_node = rates if isinstance(rates, Mapping) else dict.fromkeys(graph.nodes, rates)
    check_nodes(graph, by_node, "max_error_rate")
    return {
        name: _check_of(node.operator, by_node.get(name, ErrorRateCheck()))
        for name, node in graph.nodes.items()
    }


def check_nodes(graph: OperatorGraph, names: Collection[str], argument: str, *others: str) -> None:
    """Check that every name in ``names`` is a node or one of ``others``.

    Raises:
        PipelineDefinitionError: A name is neither of these.
    """
    known = list(dict.fromkeys([*graph.nodes, *others]))
    for name in names:
        if name not in known:
            reason = f"{argument} names {name!r}; its nodes are {', '.join(known)}"
            raise PipelineDefinitionError(graph.name, reason)


def _check_of(operator: Operator, rate: ErrorRate) -> ErrorRateCheck | None:
    if not operator.__dataops__.spec.kind.by_record:
        return None
    return rate if rate is None or isinstance(rate, ErrorRateCheck) else ErrorRateCheck(rate)


def error_rate_results(
    context: StepContext,
    spec: dg.AssetCheckSpec | None,
    rate: ErrorRateCheck | None,
    results: Sequence[RunResult],
    partitions: Sequence[str | None] = (),
) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of the check if it exists and is selected; in an op it always is."""
    if rate is None or spec is None or not is_selected(context, spec.key):
        return
    failed = sum(manifest.failed for manifest, _ in results)
    records = sum(manifest.rows_in for manifest, _ in results)
    share = failed / records if records else 0.0
    text = "No record failed."
    if failed:
        text = f"{failed:,} of {counted(records, 'records')} failed, {percentage(share)}."
    text += partitions_text(
        "failed records", partitions, [rates.failed > 0 for rates, _ in results]
    )
    severity = severity_in(spec, rate.severity_at(share))
    if share > rate.max_error_rate and spec.blocking and severity is dg.AssetCheckSeverity.ERROR:
        text += _HELD_UP
    yield dg.AssetCheckResult(
        passed=share <= rate.max_error_rate,
        asset_key=spec.asset_key,
        check_name=spec.name,
        severity=severity,
        description=text,
        metadata={
            FAILED_SHARE: share,
            ROWS_FAILED: failed,
            **_failure_metadata(results),
        },
    )


def is_selected(context: StepContext, check: dg.AssetCheckKey) -> bool:
    """Return whether the run selected a check of an asset."""
    if not isinstance(context, dg.AssetExecutionContext):
        return True
    return check in context.selected_asset_check_keys


def _failure_metadata(results: Sequence[RunResult]) -> dict[str, Any]:
    paths = [error_path for _, error_path in results if error_path is not None]
    if not paths:
        return {}
    metadata: dict[str, Any] = {FAILURES: failure_table(failure_groups(paths))}
    if len(paths) == 1:
        metadata[ERROR_PATH] = dg.MetadataValue.path(paths[0])
    else:
        metadata[ERROR_PATHS] = dg.MetadataValue.json(list(map(str, paths)))
    return metadata
