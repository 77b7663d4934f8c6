"""AssetOptions: what all assets of a pipeline have in common."""

import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import dagster as dg

from dagster_dataops.assets.checks.error_rate import ErrorRateCheck, ErrorRates

Condition: TypeAlias = dg.AutomationCondition[dg.AssetKey]
Automation: TypeAlias = Condition | Mapping[str, Condition]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetOptions:
    """How the assets of one pipeline are partitioned and kept up to date.

    Attributes:
        partitions_def: Of every node and of the source, unless said otherwise.
        unpartitioned: Nodes that take all partitions at once.
        allow_missing_partitions: Whether those do without the ones that are not there.
        backfill_policy: Of the partitioned assets.
        automation_condition: Of every asset, or by node name.
        freshness_policy: Of every asset.
        root: Folder of all results, where it is known before a run.
        stream_name: What a source that is a stream is called.
        retry_policy: Of every step.
        max_error_rate: How many records of an operator may fail; of all, or by node name.
    """

    partitions_def: dg.PartitionsDefinition | None = None
    unpartitioned: Collection[str] = ()
    allow_missing_partitions: bool = False
    backfill_policy: dg.BackfillPolicy | None = None
    automation_condition: Automation | None = None
    freshness_policy: dg.FreshnessPolicy | None = None
    root: Path | None = None
    stream_name: str = ""
    retry_policy: dg.RetryPolicy | None = None
    max_error_rate: ErrorRates = field(default_factory=ErrorRateCheck)

    @property
    def named_nodes(self) -> set[str]:
        """The nodes that something is said of by name."""
        by_name = (
            set(self.automation_condition)
            if isinstance(self.automation_condition, Mapping)
            else set()
        )
        return by_name | set(self.unpartitioned)

    def automation_of(self, node: str) -> Condition | None:
        """Return when a node is materialized by itself."""
        if isinstance(self.automation_condition, Mapping):
            return self.automation_condition.get(node)
        return self.automation_condition


@contextmanager
def backfills(
    partitions_def: dg.PartitionsDefinition | None, policy: dg.BackfillPolicy | None
) -> Iterator[dg.BackfillPolicy | None]:
    """Give the policy of an asset with these partitions, to be handed to ``dg.asset`` here.

    Dagster calls that keyword a beta one in ``dg.asset``, not in ``dg.multi_asset``; a warning
    an operator would tell users nothing.
    """
    if partitions_def is None or policy is None:
        yield None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        yield policy
