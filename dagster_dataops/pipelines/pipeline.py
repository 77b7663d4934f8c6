"""pipeline(): joins operators into a graph whose nodes write their results.

    with pipeline("docs") as ppl:
        ppl.upper = data.demo.process_uppercase(input_key="text")
        ppl.dedup = data.demo.process_deduplicate(input_key="text")

    ppl([{"text": "hello"}])

Each node takes the result of the node before it; ``ppl.add(name, operator, inputs=[...])`` names
other inputs. After the block the pipeline cannot be changed. It may be a node of another pipeline:
after ``other.docs = ppl``, its nodes are called ``docs_upper`` and ``docs_dedup``.

A node that builds an artefact is the value of an option of others: ``Search(index=ppl.index)``.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from dagster_dataops.configuration import config
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.parts import NotebookHtml
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.definition.operator import Operator, with_artefacts
from dagster_dataops.operators.definition.reader_base import Readable
from dagster_dataops.operators.options.artefact_options import ArtefactReference, NodeReference
from dagster_dataops.pipelines.chaining import chained
from dagster_dataops.pipelines.combined_inputs import Combined, check_stream
from dagster_dataops.pipelines.given_operators import constructed
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode

if TYPE_CHECKING:
    from dagster_dataops.execution.run_report import RunReport

_OWN: Final = frozenset({"add", "chained", "graph", "materialize", "name", "nodes", "of", SOURCE})


class Pipeline:
    """Operators joined by name; filled inside its ``with`` block, immutable after it.

    Its ``repr`` shows the graph, and the state of each node below ``config.data_process_path``.

    Attributes:
        name: Name of the folder and of the asset group; may be empty.
    """

    _repr_html_ = NotebookHtml()

    def __init__(self, name: str = "") -> None:
        if name and not (name.isidentifier() and name.isascii()):
            reason = "its name must be a plain identifier: it names a folder and an asset group"
            raise PipelineDefinitionError(name, reason)
        self._set(name=name, _nodes={}, _nested={}, _graph=None)

    def _set(self, **values: Any) -> None:
        for key, value in values.items():
            object.__setattr__(self, key, value)

    name: str
    _nodes: dict[str, OperatorNode]
    _nested: dict[str, str]  # names of nested pipelines, each with the name of its last node
    _graph: OperatorGraph | None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            nodes = (
                replace(node, inputs=tuple(_renamed(name, self._nested) for name in node.inputs))
                for node in self._nodes.values()
            )
            self._set(_graph=OperatorGraph.of(self.name, nodes))

    def add(
        self, name: str, operator: object, inputs: Sequence[str] | str | None = None
    ) -> NodeReference:
        """Add a node.

        Args:
            name: Name of the node, its folder and its asset; unique in the pipeline.
            operator: One of the following. A constructed operator, or an operator class without
                required options. Several nodes combined, such as ``combine.sample([ppl.a,
                ppl.b])``. A complete pipeline, whose nodes become nodes of this one, named
                ``<name>_<node>``. A function of all records, or of one record if its first
                parameter is annotated ``dict``.
            inputs: Input nodes, by name or as ``ppl.<name>``, of a node with several results as
                ``ppl.<name>.<output>``; ``ppl.source`` is the input of the pipeline. By default the
                node added last, artefacts and exports apart.

        Returns:
            The node, to use as an input of others; for a nested pipeline its last node.

        Raises:
            PipelineDefinitionError: The name is taken or invalid, or ``operator`` is not an
                operator.
            OperatorDefinitionError: A function takes no data.
        """
        if self._graph is not None:
            raise PipelineDefinitionError(self.name, f"it is complete; {name!r} comes too late")
        self._check_name(name)
        if isinstance(operator, Combined):
            inputs, operator = operator.nodes(self.name, name, inputs), operator.operator
        before = self._last_records()
        wanted = [before] if inputs is None else [inputs] if isinstance(inputs, str) else inputs
        if not wanted:
            raise PipelineDefinitionError(self.name, f"node {name!r} has no inputs")
        if isinstance(operator, Pipeline):
            return self._nest(name, operator.graph, wanted)
        target = self._constructed(name, operator)
        invocation = target.__dataops__
        if invocation.spec.kind.takes_streams and not invocation.artefacts:
            check_stream(self.name, name, target, len(wanted))
        self._nodes[name] = OperatorNode(name, target, tuple(str(item) for item in wanted))
        return self._reference(name)

    def _reference(self, node: str) -> NodeReference:
        return NodeReference(node, self._nodes[node].operator.__dataops__.spec.outputs)

    def _nest(self, name: str, inner: OperatorGraph, inputs: Sequence[str]) -> NodeReference:
        """Add the nodes of a pipeline. Nodes that take its source take the one input instead."""
        if len(inputs) != 1:
            reason = (
                f"node {name!r} is a pipeline, which takes one input, not {len(inputs)}; join them "
                f"in a node before it, as by combine.concat([ppl.{inputs[0]}, ...])"
            )
            raise PipelineDefinitionError(self.name, reason)
        names = {SOURCE: str(inputs[0])} | {node: f"{name}_{node}" for node in inner.nodes}
        for node in inner.nodes.values():
            self._check_name(names[node.name])
        for node in inner.nodes.values():
            renamed_inputs = tuple(_renamed(wanted, names) for wanted in node.inputs)
            renamed = {old: ArtefactReference(new) for old, new in names.items()}
            self._nodes[names[node.name]] = OperatorNode(
                names[node.name], with_artefacts(node.operator, renamed), renamed_inputs
            )
        self._nested[name] = names[inner.last.name]
        return self._reference(self._nested[name])

    def _last_records(self) -> str:
        """Return the node added last whose result is records; else the source."""
        for name, node in reversed(self._nodes.items()):
            if not node.operator.__dataops__.spec.kind.holds_files:
                return name
        return SOURCE

    def _check_name(self, name: str) -> None:
        if name in self._nodes or name in self._nested:
            raise PipelineDefinitionError(self.name, f"two nodes are called {name!r}")
        if not (name.isidentifier() and name.isascii()) or name.startswith("_") or name in _OWN:
            reserved = ", ".join(sorted(_OWN))
            reason = f"{name!r} cannot name a node; take a plain identifier other than {reserved}"
            raise PipelineDefinitionError(self.name, reason)

    def _constructed(self, name: str, operator: object) -> Operator:
        operator = constructed(operator, name)
        if isinstance(operator, Readable):
            reason = (
                f"node {name!r} is the reader {operator.name}, which takes nothing: give it as the "
                "pipeline's source, ppl(reader), and in Dagster source=reader"
            )
            raise PipelineDefinitionError(self.name, reason)
        if not isinstance(operator, Operator):
            kind = type(operator).__name__
            reason = (
                f"node {name!r} is a {kind}, not an operator; give a function, or register it with "
                "@data_register('data.<group>') and use data.<group>.<name>(...)"
            )
            raise PipelineDefinitionError(self.name, reason)
        return operator

    def chained(self) -> "Pipeline":
        """Return a pipeline with a single node, the chain of the operators of this one.

        The node has the name of the last node, its parts those of the nodes. It writes one result,
        and the results between the nodes are not written.

        Raises:
            PipelineDefinitionError: The nodes are not in a line, or one is no record operator.
            OperatorOptionError: An execution setting differs between the nodes.
        """
        return Pipeline.of(chained(self.name, self.graph))

    @classmethod
    def of(cls, graph: OperatorGraph) -> Self:
        """Return the complete pipeline of a graph, such as one that `graphs` has edited."""
        ppl = cls(graph.name)
        ppl._set(_nodes=dict(graph.nodes), _graph=graph)
        return ppl

    @property
    def source(self) -> NodeReference:
        """The input of the pipeline, for ``inputs=[ppl.source]``."""
        return NodeReference(SOURCE)

    @property
    def graph(self) -> OperatorGraph:
        """The graph, once the ``with`` block has ended."""
        if self._graph is None:
            reason = "it is not complete: use it after its `with` block, which must not have failed"
            raise PipelineDefinitionError(self.name, reason)
        return self._graph

    @override
    def __setattr__(self, name: str, operator: object) -> None:
        self.add(name, operator)

    def __getattr__(self, name: str) -> NodeReference:
        if not name.startswith("_") and name in self._nested:
            return self._reference(self._nested[name])
        if name.startswith("_") or name not in self._nodes:
            known = ", ".join(self._nodes) if not name.startswith("_") else ""
            msg = f"pipeline {self.name!r} has no node {name!r}; its nodes: {known}"
            raise AttributeError(msg)
        return self._reference(name)

    @override
    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._nodes})

    @override
    def __repr__(self) -> str:
        """Show the graph and the state of each node below the configured folder."""
        from dagster_dataops.pipelines.node_state import node_states

        nodes = self._nodes.values()
        if self._graph is None:
            title = f"<pipeline {self.name!r}, {counted(len(nodes), 'nodes')}, incomplete>"
            states = dict.fromkeys(self._nodes, "not complete")
        else:
            root = config.results_root() / self.name
            count = counted(len(nodes), "nodes")
            title = f"<pipeline {self.name!r}, {count}, results in {root.path}>"
            states = node_states(self._graph, root)
        rows = [
            (f"{', '.join(node.inputs)} -> {node.name}", states[node.name], repr(node.operator))
            for node in nodes
        ]
        edge, state = (max((len(row[at]) for row in rows), default=0) for at in (0, 1))
        lines = [f"  {row[0]:{edge}}  {row[1]:{state}}  {row[2]}" for row in rows]
        return "\n".join([title, *lines])

    def __call__(self, data: object) -> Any:
        """Run every node over ``data``.

        Args:
            data: A list of dicts (never changed), one dict, the path of a jsonl file, a
                `JsonlDataset`, or a stream, which resumes after a kill if runs resume.

        Returns:
            The last node's records in order, as a list of dicts; the absolute path of the
            export if the last node has ``set_output`` or is an export; the path of the folder if
            the last node builds an artefact. If it has several results, a dict with one of these
            by the name of each output.
        """
        from dagster_dataops.pipelines.local_run import run_graph  # the engine; loaded by use

        return run_graph(self.graph, data)

    def materialize(self, data: object) -> "dict[str, RunReport]":
        """Run every node over ``data`` and return a report per node, by name, without records.

        The report of a node with several results has a report of each in its ``outputs``.

        Raises:
            PipelineDefinitionError: A node has ``_save_data=False``, so its result has no file.
        """
        from dagster_dataops.pipelines.local_run import materialize

        for node in self.graph.nodes.values():
            if not node.operator.__dataops__.resolved.save_data:
                reason = f"node {node.name!r} has _save_data=False: it leaves no file"
                raise PipelineDefinitionError(self.name, reason)
        with tempfile.TemporaryDirectory(prefix="dataops-") as scratch:
            return materialize(self.graph, data, scratch=Path(scratch))


def _renamed(wanted: str, names: Mapping[str, str]) -> str:
    """Return an input such as ``split.train``, with the new name of its node if it has one."""
    node, dot, output = wanted.partition(".")
    return f"{names.get(node, node)}{dot}{output}"


def pipeline(name: str = "") -> Pipeline:
    """Return a new pipeline, to fill in its ``with`` block.

    Args:
        name: Name of the folder of the results and of the asset group; an identifier.
    """
    return Pipeline(name)
