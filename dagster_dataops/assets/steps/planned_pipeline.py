"""PlannedPipeline: a pipeline with its asset specs, before it is divided into steps."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import dagster as dg

from dagster_dataops.assets.inputs.source_results import SourceWork
from dagster_dataops.assets.planning.asset_options import AssetOptions, resource_key_of
from dagster_dataops.assets.planning.asset_plan import AssetPlan, SourceAsset, plan_assets
from dagster_dataops.assets.planning.execute_hook import execute_hook
from dagster_dataops.assets.planning.option_keywords import takes_options
from dagster_dataops.assets.planning.translator import DataOpsTranslator
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext, StepEvent
from dagster_dataops.assets.steps.source_assets import Source, source_asset
from dagster_dataops.assets.steps.step_body import Body, body_of
from dagster_dataops.datasets.exporters.packages import require
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.places.url_forms import is_object_url, is_url
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import SOURCE
from dagster_dataops.pipelines.graph.source_check import with_source
from dagster_dataops.pipelines.pipeline import Pipeline


@dataclass(frozen=True)
class PlannedPipeline:
    """A pipeline with its source and the plan of every asset.

    Attributes:
        graph: The graph of the pipeline.
        origin: The asset of its source.
        plans: The plan of each node, after those of its inputs.
        options: The given options.
    """

    graph: OperatorGraph
    origin: SourceAsset
    plans: Sequence[AssetPlan]
    options: AssetOptions

    @property
    def title(self) -> str:
        """The first part of the names of jobs and steps; ``dataops`` for an unnamed pipeline."""
        return self.graph.name or "dataops"

    @property
    def resource_key(self) -> str:
        """The key of the `DataOpsResource`."""
        return resource_key_of(self.options)

    @property
    def body(self) -> Body:
        """The body of a step that runs operators: the translator's, or the default one."""
        return body_of(self.resource_key, execute_hook(self.options, self.graph.name))

    @property
    def specs(self) -> list[dg.AssetSpec]:
        """The asset spec of each node, of a node with several results those of all."""
        return [spec for plan in self.plans for spec in plan.stored_specs]

    def run(self, context: StepContext, dataops: DataOpsResource) -> Iterator[StepEvent]:
        """Run the nodes in order and yield the events of each.

        In an asset step, only the selected nodes run.
        """
        loaded: dict[str, Any] = {}
        from dagster_dataops.assets.steps.step_work import StepWork  # the engine; loaded by use

        plans = self.plans
        if isinstance(context, dg.AssetExecutionContext):
            pass  # the source has a step of its own
        elif self.origin.plan is not None:
            plans = [self.origin.plan, *plans]
        elif self.origin.function is not None:
            work = SourceWork(self.origin.function, dg.AssetSpec(self.origin.key))
            for source in work.run(context, dataops):
                loaded[f"input_{SOURCE}"] = source.value
                yield source
        yield from StepWork(plans, {}, loaded).run(context, dataops)


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
    """Return the plan of a pipeline as `plan_pipeline` does, from options in a dict.

    Raises:
        ConfigurationError: ``ppl`` is no pipeline.
        MissingExtraError: The root or the source needs a package that is not installed.
    """
    known: object = ppl
    if not isinstance(known, Pipeline):
        wanted = 'a pipeline, such as with pipeline("docs") as ppl: ppl.upper = upper()'
        raise ConfigurationError("ppl", ppl, wanted)
    _check_extras(options.get("resource"), source)
    graph = with_source(ppl.graph, source)
    origin = source_asset(source, graph.name, options)
    translator = options.get("dagster_dataops_translator") or DataOpsTranslator()
    return PlannedPipeline(graph, origin, plan_assets(graph, origin, translator, options), options)


def _check_extras(resource: DataOpsResource | None, source: object) -> None:
    """Check when definitions load that the packages for the root and the source are installed."""
    root = None if resource is None else resource.root
    if isinstance(root, str) and not isinstance(root, dg.EnvVar) and is_url(root):
        require("obstore", "a root on an object store", "objectstore")
    if not isinstance(source, (str, os.PathLike)):
        return
    path = os.fspath(source)
    if is_object_url(path):
        require("obstore", "a source on an object store", "objectstore")
    from dagster_dataops.streams.files.locations import compression_of

    if compression_of(path) == "zstd":
        require("zstandard", "reading Zstandard files", "zstd")
