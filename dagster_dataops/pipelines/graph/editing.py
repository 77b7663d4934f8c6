"""Look at the stages of a stream or the nodes of a pipeline, and exchange some: ``graphs``."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast, overload

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.pipelines.graph import node_editing
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import OperatorNode
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.streams.core.stage_tree import distinct_stages, exchanged
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.operations import Operations
from dagster_dataops.streams.sharding.workers_stage import check_sharding

if TYPE_CHECKING:
    from dagster_dataops.operators.definition.operator import Operator

__all__ = ["find", "insert", "remove", "replace", "traverse"]


def __dir__() -> list[str]:
    return __all__


_Graph = TypeVar("_Graph", bound="Operations | OperatorGraph")

Wanted: TypeAlias = "str | Callable[[Any], bool]"
Part: TypeAlias = Stage | OperatorNode | str
New: TypeAlias = "Operations | Callable[..., Operations] | Operator"


class FoundStages(list[Stage]):
    """The stages that `find` found. Taking one of none is an error that lists the stages."""

    def __init__(self, stages: list[Stage], wanted: str, known: str) -> None:
        super().__init__(stages)
        self._missing = (wanted, known)

    @override
    def __getitem__(self, index: Any) -> Any:
        if not self and not isinstance(index, slice):
            raise _absent(*self._missing)
        return super().__getitem__(index)


@overload
def traverse(graph: Operations) -> list[Stage]: ...
@overload
def traverse(graph: OperatorGraph) -> list[OperatorNode]: ...


def traverse(graph: Operations | OperatorGraph) -> list[Stage] | list[OperatorNode]:
    """Return all stages of a stream, or all nodes of a graph: each once, sources first.

    A stage has ``name``, ``inputs`` (stages) and ``options()``; a node has ``name``, ``inputs``
    (names) and ``operator``.
    """
    if isinstance(graph, OperatorGraph):
        return graph.ordered()
    return distinct_stages(_last(graph))


@overload
def find(graph: Operations, wanted: Wanted) -> list[Stage]: ...
@overload
def find(graph: OperatorGraph, wanted: Wanted) -> list[OperatorNode]: ...


def find(graph: Operations | OperatorGraph, wanted: Wanted) -> list[Stage] | list[OperatorNode]:
    """Return the stages, or the nodes, of a name or a class, or for which a function is true.

    Args:
        graph: A stream or a graph.
        wanted: The name of stages, such as ``map``; the name of a node, or of its operator, such as
            ``unique`` or ``dedup.Exact``; the class of a stage, or of the operator of a node; or a
            function of a stage or a node.

    Returns:
        A list, sources first; empty if there is none.

    Raises:
        StreamDefinitionError: ``wanted`` is neither a name nor a function.
    """
    target: object = wanted
    if not isinstance(target, str) and not callable(target):
        reason = f"wanted is a {type(target).__name__}; it must be a name, a class or a function"
        raise StreamDefinitionError("graphs.find", reason)
    if isinstance(graph, OperatorGraph):
        return node_editing.find_nodes(graph, wanted)
    stages = traverse(graph)
    if isinstance(wanted, str):
        return FoundStages(
            [stage for stage in stages if stage.name == wanted], wanted, _names(stages)
        )
    if isinstance(wanted, type):
        chosen = [stage for stage in stages if isinstance(stage, wanted)]
    else:
        chosen = [stage for stage in stages if wanted(stage)]
    return FoundStages(chosen, getattr(wanted, "__name__", "wanted"), _names(stages))


def replace(graph: _Graph, old: Part, new: New) -> _Graph:
    """Return a stream or graph in which a stage or node is replaced by another.

    Args:
        graph: A stream or a graph.
        old: The stage or node.
        new: For a stage, a function of the streams that it reads, such as
            ``lambda upstream: upstream.map(fn)``, or a stream. For a node, an operator; name and
            inputs stay.

    Raises:
        StreamDefinitionError: The stage is not in the stream, or several have the name.
        PipelineDefinitionError: The node is not in the graph, or the operator does not fit.
    """
    if isinstance(graph, OperatorGraph):
        return node_editing.replace_node(graph, _node(old), new)  # type: ignore[return-value]
    stage = _stage(graph, old)
    upon = [DataPipelineBuilder(source) for source in stage.inputs]
    return cast("_Graph", _exchanged(graph, stage, lambda _: _stage_of("replace", new, *upon)))


def insert(
    graph: _Graph,
    after: Part,
    new: New,
    name: str | None = None,
) -> _Graph:
    """Return a stream or graph with a stage or node added after another, for all its readers.

    Args:
        graph: A stream or a graph.
        after: The stage, or the node; of a node with several results ``<node>.<result>``;
            ``source`` for the input of a graph.
        new: For a stream, a function of the stream up to ``after``, such as
            ``lambda upstream: upstream.filter(fn)``. For a graph, an operator.
        name: The name of the new node, for a graph only.

    Raises:
        StreamDefinitionError: The stage is not in the stream, or several have the name.
        PipelineDefinitionError: The node is not in the graph, or the new one does not fit.
    """
    if isinstance(graph, OperatorGraph):
        return node_editing.insert_node(graph, _node(after), new, name)  # type: ignore[return-value]
    stage = _stage(graph, after)
    upon = DataPipelineBuilder(stage)
    return cast("_Graph", _exchanged(graph, stage, lambda _: _stage_of("insert", new, upon)))


def remove(graph: _Graph, old: Part) -> _Graph:
    """Return a stream or graph without a stage or node; its readers read its input.

    Raises:
        StreamDefinitionError: The stage is not in the stream, several have the name, or it has
            no input or several.
        PipelineDefinitionError: The node is not in the graph, has several inputs, or an option of
            another node names it.
    """
    if isinstance(graph, OperatorGraph):
        return node_editing.remove_node(graph, _node(old))  # type: ignore[return-value]
    stage = _stage(graph, old)
    if len(stage.inputs) != 1:
        problem = f"it has {len(stage.inputs)} inputs" if stage.inputs else "it is a source"
        reason = f"cannot be removed: {problem}, so nothing can take its place; use graphs.replace"
        raise StreamDefinitionError(stage.name, reason)
    return cast("_Graph", _exchanged(graph, stage, lambda removed: removed.inputs[0]))


def _exchanged(graph: Operations, stage: Stage, make: Callable[[Stage], Stage]) -> Any:
    edited = exchanged(graph.stage, stage, make)
    check_sharding(edited)
    return graph.with_stage(edited)


def _last(graph: object) -> Stage:
    if not isinstance(graph, Operations):
        reason = f"expected a stream or an OperatorGraph, but got a {type(graph).__name__}"
        raise StreamDefinitionError("graphs", reason)
    return graph.stage


def _node(part: Part) -> str:
    return part if isinstance(part, str) else part.name


def _stage(graph: Operations, part: Part) -> Stage:
    """Return the stage that is given, by itself or by name; refuse none and several."""
    stages = distinct_stages(_last(graph))
    same = [stage for stage in stages if stage is part or stage.name == part]
    if len(same) == 1:
        return same[0]
    if same:
        reason = f"{len(same)} stages have this name; choose one from graphs.find()"
        raise StreamDefinitionError(same[0].name, reason)
    raise _absent(_node(part), _names(stages))


def _absent(wanted: str, known: str) -> StreamDefinitionError:
    reason = (
        f"it is not in this stream. Its stages are: {known}. Each edit returns a new stream: find "
        "the stage in that one"
    )
    return StreamDefinitionError(wanted, reason)


def _names(stages: list[Stage]) -> str:
    return ", ".join(stage.name for stage in stages)


def _stage_of(action: str, new: Any, *upon: Operations) -> Stage:
    """Return the last stage of the stream that is given, or that a function makes of others."""
    stream: object = new
    if callable(new) and not isinstance(new, Operations):
        _check_takes(action, new, len(upon))
        stream = new(*upon)
    if not isinstance(stream, Operations):
        reason = f"new must be or return a stream, but this is a {type(stream).__name__}"
        raise StreamDefinitionError(f"graphs.{action}", reason)
    return stream.part()


def _check_takes(action: str, function: Callable[..., Any], count: int) -> None:
    """Refuse a function that cannot be called with as many streams."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # of some functions in C
        return
    try:
        signature.bind(*range(count))
    except TypeError as error:
        streams = "the stream that the stage reads" if count == 1 else f"{count} streams"
        reason = f"new is called with {streams}, but cannot be: {error}"
        if not count:
            reason = "the stage is a source, so new must be a stream, not a function of one"
        raise StreamDefinitionError(f"graphs.{action}", reason) from error
