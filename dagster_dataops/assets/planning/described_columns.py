"""DescribedColumns: what columns of results are, by `columns=` and by docstrings of operators."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import dagster as dg

from dagster_dataops.assets.checks.error_rate import check_nodes
from dagster_dataops.assets.inputs.path_pattern import SourceFile
from dagster_dataops.assets.metadata.columns.column_texts import texts_of
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode

ColumnOption: TypeAlias = Mapping[str, str | Mapping[str, str]]


@dataclass(frozen=True)
class DescribedColumns:
    """What the columns of the results of a pipeline are.

    Attributes:
        graph: The nodes; ``None`` if only the source is described.
        common: Texts of columns of any result.
        by_node: Texts of columns of the results of one node, and of those made of them.
        keys: The key of the asset of each result, by name.
        source: The file of the source, or one file for each partition; ``None`` for an asset.
    """

    graph: OperatorGraph | None = None
    common: Mapping[str, str] = field(default_factory=dict)
    by_node: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    keys: Mapping[str, dg.AssetKey] = field(default_factory=dict)
    source: SourceFile | None = None

    @classmethod
    def of(
        cls,
        graph: OperatorGraph,
        columns: ColumnOption | None,
        keys: Mapping[str, dg.AssetKey],
        source: SourceFile | None = None,
    ) -> "DescribedColumns":
        """Return the columns that the option describes.

        ``keys`` may be completed later.

        Raises:
            ConfigurationError: A column has no text.
            PipelineDefinitionError: A node is unknown.
        """
        common, by_node = divided(columns)
        check_nodes(graph, by_node, "columns", SOURCE, *graph.results)
        return cls(graph, common, by_node, keys, source)

    def of_result(self, result: str) -> dict[str, str]:
        """Return the texts that are given for a result by its name or that of its node."""
        node = result.partition(".")[0]
        return {**self.by_node.get(node, {}), **self.by_node.get(result, {})}

    def texts(self, result: str, operator: Operator | None) -> dict[str, str]:
        """Return what each column of a node's results is, as far as that is known.

        Texts of the option precede those of docstrings, and texts of a node those of the nodes
        before it. A column that an operator only reads keeps the text of the node that made it.
        """
        name = result.partition(".")[0]
        if name not in self._earlier:
            self._earlier[name] = self._texts_before(name)
        documented, inherited = self._earlier[name]
        if operator is not None:
            documented = dict(documented)
            _add(documented, operator)
        return {**documented, **inherited, **self.common, **self.of_result(result)}

    @cached_property
    def _earlier(self) -> dict[str, tuple[dict[str, str], dict[str, str]]]:
        """The cached results of `_texts_before`, by the name of the node."""
        return {}

    def _texts_before(self, name: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return the texts of docstrings and of the option for the nodes before a node."""
        documented: dict[str, str] = {}
        inherited: dict[str, str] = dict(self.by_node.get(SOURCE, {}))
        for node in self._before(name):
            _add(documented, node.operator)
            for output in node.results:
                inherited |= self.of_result(output)
        return documented, inherited

    def is_last(self, name: str) -> bool:
        """Whether no other node takes a result of a node."""
        nodes = {} if self.graph is None else self.graph.nodes
        inputs = {source.partition(".")[0] for node in nodes.values() for source in node.inputs}
        return name in nodes and name not in inputs

    def keys_before(self, name: str) -> list[dg.AssetKey]:
        """Return the keys of the results that a node's results are made of."""
        names = [result for node in self._before(name) for result in node.results]
        return [self.keys[name] for name in names]

    @cached_property
    def _ordered(self) -> list[OperatorNode]:
        """The nodes in topological order, which a run asks for at each node."""
        return [] if self.graph is None else self.graph.ordered()

    def _before(self, name: str) -> Sequence[OperatorNode]:
        """Return the nodes that a node's results are made of, in order."""
        if self.graph is None or name not in self.graph.nodes:
            return []
        wanted, nodes = {name}, []
        for node in reversed(self._ordered):
            if node.name in wanted:
                wanted |= {source.partition(".")[0] for source in node.inputs}
                nodes.append(node)
        return nodes[:0:-1]


def divided(
    columns: ColumnOption | None,
) -> tuple[dict[str, str], dict[str, Mapping[str, str]]]:
    """Return the texts of the option that are for all nodes, and those by node.

    Raises:
        ConfigurationError: A column has no text.
    """
    common: dict[str, str] = {}
    by_node: dict[str, Mapping[str, str]] = {}
    for name, value in (columns or {}).items():
        if isinstance(value, Mapping):
            by_node[name] = {
                column: _text(f"{name}.{column}", text) for column, text in value.items()
            }
        else:
            common[name] = _text(name, value)
    return common, by_node


def _text(place: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        allowed = "a text that says what the column is; columns of one node are a dict"
        raise ConfigurationError(f"columns.{place}", value, allowed)
    return value


def _add(texts: dict[str, str], operator: Operator) -> None:
    for entry in texts_of(operator):
        if entry.written or entry.column not in texts:
            texts[entry.column] = entry.text
