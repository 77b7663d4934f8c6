"""PlannedPipeline: a pipeline with its asset specs, before it is divided into steps."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import dagster as dg

from dagster_dataops.assets.inputs.source_results import source_result
from dagster_dataops.assets.planning.asset_options import AssetOptions
from dagster_dataops.assets.planning.asset_plan import AssetPlan, plan_assets
from dagster_dataops.assets.planning.option_keywords import takes_options
from dagster_dataops.assets.planning.source_assets import Source, SourceAsset
from dagster_dataops.assets.planning.translator import DataOpsTranslator
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext, StepEvent
from dagster_dataops.assets.steps.step_work import StepWork
from dagster_dataops.assets.steps.stream_source import StreamSource, origin_of
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.graph.column_check import check_source
from dagster_dataops.graph.graph import SOURCE, OperatorGraph
from dagster_dataops.pipelines.pipeline import Pipeline


@dataclass(frozen=True)
class PlannedPipeline:
    """A pipeline with its source and the plan of every asset.

    Attributes:
        graph: Graph of the pipeline.
        origin: Asset of its source.
        plans: Plan of each node, after those of its inputs.
        options: Options that were given.
    """

    graph: OperatorGraph
    origin: SourceAsset
    plans: Sequence[AssetPlan]
    options: AssetOptions

    @property
    def title(self) -> str:
        """First part of the names of jobs and steps; ``dataops`` for a pipeline without a name."""
        return self.graph.name or "dataops"

    @property
    def specs(self) -> list[dg.AssetSpec]:
        """The asset spec of each node, of a node with several results those of all."""
        return [spec for plan in self.plans for spec in plan.specs]

    def run(self, context: StepContext, dataops: DataOpsResource) -> Iterator[StepEvent]:
        """Run every node, or the selected ones of an asset step; yield the events of each."""
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
        context: StepContext,
        dataops: DataOpsResource,
    ) -> dg.MaterializeResult[JsonlDataset]:
        """Write the records of a source function: an op has no source asset to load."""
        key = self.origin.key
        made = source_result(context, dataops, function, dataops.folder(key.path))
        return dg.MaterializeResult(
            asset_key=key,
            value=made.dataset,
            metadata=made.metadata,
            data_version=dg.DataVersion(made.dataset.fingerprint or ""),
        )


@takes_options(AssetOptions)
def plan_pipeline(
    ppl: Pipeline, *, source: Source, **options: Unpack[AssetOptions]
) -> PlannedPipeline:
    """Return a pipeline with its asset specs, to pass to `DataOpsResource.run`.

    Args:
        ppl: A complete pipeline.
        source: As for `build_definitions`.
        **options: See `AssetOptions`.

    Example:
        .. code-block:: python

            planned = plan_pipeline(ppl, source="docs.jsonl")


            @dg.op(out={})
            def nightly(context: dg.OpExecutionContext, dataops: DataOpsResource):
                yield from dataops.run(context, planned)
    """
    return planned_pipeline(ppl, source, options)


def planned_pipeline(ppl: Pipeline, source: Source, options: AssetOptions) -> PlannedPipeline:
    """Return what `plan_pipeline` does, of options that are a dict already."""
    graph = ppl.graph
    check_source(graph, source)
    origin = origin_of(source, graph.name, options)
    translator = options.get("dagster_dataops_translator") or DataOpsTranslator()
    return PlannedPipeline(graph, origin, plan_assets(graph, origin, translator, options), options)
