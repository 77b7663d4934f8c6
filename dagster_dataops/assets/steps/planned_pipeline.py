"""PlannedPipeline: what becomes of a whole pipeline in Dagster, before it is laid out in steps."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from dagster_dataops.assets.inputs.source_results import standing_source, write_source
from dagster_dataops.assets.metadata.materialization import dataset_metadata
from dagster_dataops.assets.planning.asset_options import AssetOptions
from dagster_dataops.assets.planning.asset_plan import AssetPlan, plan_assets
from dagster_dataops.assets.planning.source_assets import Source, SourceAsset
from dagster_dataops.assets.planning.translator import DataOpsTranslator
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import Context
from dagster_dataops.assets.steps.run_step import StepEvent
from dagster_dataops.assets.steps.step_work import StepWork
from dagster_dataops.assets.steps.stream_source import StreamSource, origin_of
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.graph.column_check import check_source
from dagster_dataops.graph.graph import SOURCE, OperatorGraph
from dagster_dataops.pipelines.pipeline import Pipeline


@dataclass(frozen=True)
class PlannedPipeline:
    """A pipeline with its source and its translator.

    Attributes:
        graph: The pipeline's.
        origin: Its source.
        plans: Of its nodes, each after those it depends on.
        options: What all of them have in common.
    """

    graph: OperatorGraph
    origin: SourceAsset
    plans: Sequence[AssetPlan]
    options: AssetOptions

    @property
    def title(self) -> str:
        """What jobs and steps of it are called after, also if it has no name."""
        return self.graph.name or "dataops"

    @property
    def specs(self) -> list[dg.AssetSpec]:
        """The specs of its nodes."""
        return [plan.spec for plan in self.plans]

    def run(self, context: Context, dataops: DataOpsResource) -> Iterator[StepEvent]:
        """Run every node, or those that an asset's step has selected, with options as defined."""
        loaded: dict[str, Any] = {}
        plans = self.plans
        if isinstance(self.origin, StreamSource):
            if not isinstance(context, dg.AssetExecutionContext):
                plans = [self.origin.plan, *plans]
        elif self.origin.function is not None and not isinstance(context, dg.AssetExecutionContext):
            source = self._write_source(self.origin.function, context, dataops)
            loaded[f"input_{SOURCE}"] = source.value
            yield source
        yield from StepWork(plans, {}, loaded).run(context, dataops)

    def _write_source(
        self,
        function: Callable[..., Iterable[dict[str, Any]]],
        context: Context,
        dataops: DataOpsResource,
    ) -> dg.MaterializeResult[JsonlDataset]:
        """Write what a source function yields: in an op there is no asset that has done so."""
        folder = dataops.folder(self.origin.key.path)
        dataset = standing_source(context, folder, function)
        if dataset is None:
            dataset = write_source(context, folder, function, function())
        return dg.MaterializeResult(
            asset_key=self.origin.key,
            value=dataset,
            metadata=dataset_metadata(dataset),
            data_version=dg.DataVersion(dataset.fingerprint or ""),
        )


def plan_pipeline(
    ppl: Pipeline,
    *,
    source: Source,
    dagster_dataops_translator: DataOpsTranslator | None = None,
    options: AssetOptions | None = None,
) -> PlannedPipeline:
    """Return a pipeline as `DataOpsResource.run` takes it in ops and assets of one's own.

    Args:
        ppl: A complete pipeline.
        source: As for `build_definitions`.
        dagster_dataops_translator: Keys, groups and descriptions.
        options: Partitions and what else all assets have in common.

    Example:
        .. code-block:: python

            planned = plan_pipeline(ppl, source="docs.jsonl")


            @dg.op(out={})
            def nightly(context: dg.OpExecutionContext, dataops: DataOpsResource):
                yield from dataops.run(context, planned)
    """
    graph, options = ppl.graph, options or AssetOptions()
    check_source(graph, source)
    origin = origin_of(source, graph.name, options)
    plans = plan_assets(graph, origin, dagster_dataops_translator or DataOpsTranslator(), options)
    return PlannedPipeline(graph, origin, plans, options)
