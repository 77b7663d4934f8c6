"""chain(): make one operator of several record operators.

    clean = chain(data.text.Normalize(input_key="text"), data.demo.keep_long(words=5))

A record is decoded once, taken through all parts and encoded once. There is one result, one
checkpoint and one error file, whose rows name the part.
"""

from collections.abc import Sequence
from typing import Any, Final

from dagster_dataops.errors import (
    ChainDefinitionError,
    OperatorOptionError,
    PipelineDefinitionError,
)
from dagster_dataops.operators.chains.chain import (
    Chain,
    chain_of,
    checked_part,
    flattened,
    merged_settings,
)
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.definition.spec_builder import checked_name
from dagster_dataops.operators.options.settings import (
    REMOVED_SETTINGS,
    SETTING_NAMES,
    ExecutionSettings,
    parse_settings,
)
from dagster_dataops.operators.options.signature import nearest
from dagster_dataops.pipelines.given_operators import constructed
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode

_LONGEST_NAME: Final = 80


def chain(*parts: Any, name: str = "", **settings: Any) -> Chain:
    """Return one record operator that takes every record through several.

    Args:
        *parts: Record operators in order: constructed, or classes without required options, or
            functions of one record. The parts of a chain are taken in its place.
        name: Name of the operator; by default the names of the parts, joined.
        **settings: How the chain is run, such as ``_max_workers``. A setting that is not given is
            that of the parts, which must agree.

    Raises:
        ChainDefinitionError: A part is no record operator, or exports its result.
        OperatorOptionError: A setting is unknown, or differs between parts.
    """
    shown = checked_name(name, chain) if name else "chain"
    chain_settings = _settings_of(shown, settings)
    if not parts:
        raise ChainDefinitionError(shown, "it has no parts; give record operators")
    operators = [_part(shown, part, number) for number, part in enumerate(parts, 1)]
    named = [
        (operator.__dataops__.spec.name, checked_part(shown, operator)) for operator in operators
    ]
    return _chain(name or _joined(named), named, chain_settings)


def chained(pipeline: str, graph: OperatorGraph) -> OperatorGraph:
    """Return the graph with its nodes, which must be in a line, as the parts of one node.

    The new node has the name and the export of the last.

    Raises:
        PipelineDefinitionError: Nodes are not in a line, or one is no record operator.
        OperatorOptionError: A setting differs between the nodes.
    """
    nodes = graph.ordered()
    makers = {SOURCE: SOURCE, **graph.results}
    before = SOURCE
    for node in nodes:
        if [makers[wanted] for wanted in node.inputs] != [before]:
            reason = (
                f"it cannot be chained: node {node.name!r} takes {' and '.join(node.inputs)}, "
                f"and in a line it would take {before}; chain the operators of a line with chain()"
            )
            raise PipelineDefinitionError(pipeline, reason)
        before = node.name
    try:
        named = [
            (node.name, checked_part(node.name, node.operator, last=node is nodes[-1]))
            for node in nodes
        ]
    except ChainDefinitionError as error:
        reason = f"it cannot be chained: node {error.chain!r}: {error.reason}"
        raise PipelineDefinitionError(pipeline, reason) from None
    last = nodes[-1]
    operator: Operator = _chain(last.name, named, ExecutionSettings())
    output = last.operator.__dataops__.output
    operator = operator if output is None else operator.set_output(output)
    return OperatorGraph.of(graph.name, [OperatorNode(last.name, operator, (SOURCE,))])


def _chain(name: str, named: Sequence[tuple[str, Operator]], asked: ExecutionSettings) -> Chain:
    parts = flattened(named)
    before = SOURCE
    nodes = []
    for part in parts:  # a graph checks that each part finds the columns that it reads
        nodes.append(OperatorNode(part.name, part.operator, (before,)))
        before = part.name
    OperatorGraph.of(name, nodes)
    settings = [(label, part.__dataops__.settings) for label, part in named]
    return chain_of(name, parts, merged_settings(name, asked, settings))


def _part(chain_name: str, part: object, number: int) -> Operator:
    operator = constructed(part, f"part_{number}")
    if isinstance(operator, Operator):
        return operator
    kind = type(operator).__name__
    hint = "; use its chained() as a pipeline" if kind == "Pipeline" else ""
    reason = f"part {number} is a {kind}, not a record operator{hint}"
    raise ChainDefinitionError(chain_name, reason)


def _settings_of(chain_name: str, settings: dict[str, Any]) -> ExecutionSettings:
    for name in settings.keys() - SETTING_NAMES:
        if name in REMOVED_SETTINGS:
            raise OperatorOptionError(chain_name, name, REMOVED_SETTINGS[name])
        near = nearest(name, SETTING_NAMES)
        hint = f"; did you mean {near!r}?" if near else "."
        reason = (
            f"is no execution setting{hint} Give parts by position, and options to the parts. "
            f"Settings: {', '.join(sorted(SETTING_NAMES))}"
        )
        raise OperatorOptionError(chain_name, name, reason)
    return parse_settings(chain_name, settings)


def _joined(named: Sequence[tuple[str, Operator]]) -> str:
    name = "_".join(name for name, _ in named)
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{named[0][0]}_to_{named[-1][0]}"[:_LONGEST_NAME]
