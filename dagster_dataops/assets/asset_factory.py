"""build_operator_assets: the assets of a pipeline, in one step per operator or one for all."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeAlias, Unpack

import dagster as dg
from typing_extensions import Doc

from dagster_dataops.assets.planning.asset_options import AssetOptions, step_tags_of
from dagster_dataops.assets.planning.execute_hook import execute_hook
from dagster_dataops.assets.planning.option_keywords import takes_options
from dagster_dataops.assets.steps.operator_step import StepOptions, operator_step
from dagster_dataops.assets.steps.pipeline_step import pipeline_steps
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline, planned_pipeline
from dagster_dataops.assets.steps.source_assets import Source
from dagster_dataops.errors import ConfigurationError, PipelineDefinitionError
from dagster_dataops.operators.options.signature import nearest
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import SOURCE
from dagster_dataops.pipelines.pipeline import Pipeline

Layout: TypeAlias = Literal["steps", "single_step"]


class LayoutOptions(AssetOptions, total=False):
    """`AssetOptions`, and how the assets are divided into steps."""

    layout: Annotated[
        Layout,
        Doc(
            "`steps`, the default: one step per operator, which an executor may run in parallel "
            "or on another machine. `single_step`: the selected operators run one after the "
            "other in one step, and each is materialized as it finishes; this saves a process "
            "per step. Keys, specs, results and metadata are the same."
        ),
    ]
    pools: Annotated[
        Mapping[str, str] | str | None,
        Doc(
            "Dagster concurrency pools, a dict by node such as `{'answers': 'llm'}`, or one pool "
            "for all steps. The limit of a pool applies to the whole deployment. In "
            "`single_step` all nodes must name the same pool."
        ),
    ]
    op_tags: Annotated[
        Mapping[str, Mapping[str, Any]],
        Doc(
            "Tags of steps by node, such as `{'embed': {'dagster-k8s/config': {...}}}`, and by "
            "`source` for the step of the source, if it has one. Executors and launchers read "
            "them: resources of a pod, the queue of Celery, priorities. In `single_step` the tags "
            "of all nodes are those of the one step."
        ),
    ]


@takes_options(LayoutOptions)
def build_operator_assets(
    ppl: Pipeline, *, source: Source, **options: Unpack[LayoutOptions]
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return the assets of a pipeline, each after its inputs; the source's asset comes first.

    Their definitions need the resources that `dataops_resources` returns. `build_definitions` adds
    these resources itself.

    Args:
        ppl: A complete pipeline.
        source: As for `build_definitions`.
        **options: See `LayoutOptions`. ``resource`` is only used to show the folders of the assets.

    Raises:
        PipelineDefinitionError: An option names an unknown node, or one step has several pools.
        ConfigurationError: ``max_error_rate`` is not in [0, 1].
    """
    return lay_out(planned_pipeline(ppl, source, options), options)


def lay_out(
    planned: PlannedPipeline, options: LayoutOptions
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return the assets of a planned pipeline; errors as `build_operator_assets`."""
    step = StepOptions.of(options, execute_hook(options, planned.graph.name))
    by_node = pools_by_node(planned.graph, options.get("pools") or {})
    tags = tags_by_node(planned, options.get("op_tags") or {})
    if options.get("layout") == "single_step":
        pool, common = common_pool(planned.graph, by_node), common_tags(planned.graph, tags)
        assets = pipeline_steps(
            planned, planned.title, replace(step, pool=pool, op_tags=common or None)
        )
    else:
        assets = [
            operator_step(plan, step.of_node(by_node.get(plan.node.name), tags.get(plan.node.name)))
            for plan in planned.plans
        ]
    source = planned.origin.definition
    return [*([] if source is None else [source]), *planned.origin.files, *assets]


def pools_by_node(graph: OperatorGraph, pools: Mapping[str, str] | str) -> Mapping[str, str]:
    """Return the pool of each node that has one; ``pools`` is by node, or one for all nodes.

    Raises:
        PipelineDefinitionError: A node is unknown.
        ConfigurationError: The name of a pool is none.
    """
    if isinstance(pools, str):
        _check_pool("pools", pools)
        return dict.fromkeys(graph.nodes, pools)
    for name, pool in pools.items():
        if name not in graph.nodes:
            raise _no_node(graph, "a pool is", name)
        _check_pool(f"pools.{name}", pool)
    return pools


def _check_pool(setting: str, pool: object) -> None:
    if not isinstance(pool, str) or not pool or any(map(str.isspace, pool)):
        raise ConfigurationError(setting, pool, "the name of a pool: a text without white space")


def _no_node(graph: OperatorGraph, option: str, name: str) -> PipelineDefinitionError:
    near = nearest(name, list(graph.nodes))
    hint = f"; did you mean {near!r}?" if near else f". Nodes: {', '.join(graph.nodes)}"
    reason = f"{option} given for {name!r}, which is not a node{hint}"
    return PipelineDefinitionError(graph.name, reason)


def tags_by_node(
    planned: PlannedPipeline, tags: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the tags of the step of each node that has any.

    Raises:
        PipelineDefinitionError: A node is unknown, or the source has no step.
        ConfigurationError: The tags of a node are no tags of Dagster.
    """
    by_node = {}
    for name in tags:
        if name == SOURCE and not isinstance(planned.origin.definition, dg.AssetsDefinition):
            reason = "op_tags are given for the source, but it has no step: nothing writes it"
            raise PipelineDefinitionError(planned.graph.name, reason)
        if name != SOURCE and name not in planned.graph.nodes:
            raise _no_node(planned.graph, "op_tags are", name)
        by_node[name] = step_tags_of(planned.options, name) or {}
    return by_node


def common_tags(graph: OperatorGraph, tags: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the tags of a step that runs all nodes.

    Raises:
        PipelineDefinitionError: Two nodes have other values of one tag.
    """
    common: dict[str, Any] = {}
    for name in tags.keys() - {SOURCE}:
        for key, value in tags[name].items():
            if common.setdefault(key, value) != value:
                reason = (
                    f"its nodes have different values of the tag {key!r} in op_tags, but a step "
                    'can have only one; use layout="steps", or the same value for all nodes'
                )
                raise PipelineDefinitionError(graph.name, reason)
    return common


def common_pool(graph: OperatorGraph, pools: Mapping[str, str]) -> str | None:
    """Return the pool of a step that runs all nodes; ``None`` without any.

    Raises:
        PipelineDefinitionError: There are several pools, but a step can have only one.
    """
    names = sorted(set(pools.values()))
    if len(names) > 1:
        reason = (
            f"its nodes are in the pools {', '.join(names)}, but a step can have only one pool; "
            'use layout="steps", or the same pool for all nodes'
        )
        raise PipelineDefinitionError(graph.name, reason)
    return names[0] if names else None
