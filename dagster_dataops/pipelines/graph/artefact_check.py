"""Check the artefacts of a graph: options name artefacts, and inputs do not."""

from collections.abc import Mapping
from typing import Final

from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.operators.kinds.kind import OperatorKind
from dagster_dataops.operators.kinds.kind_table import RECORD
from dagster_dataops.operators.options.artefact_options import referenced
from dagster_dataops.operators.options.signature import nearest
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode

_HINT: Final = "give it to an operator as an option"


def check_artefacts(graph: str, node: OperatorNode, known: Mapping[str, OperatorNode]) -> None:
    """Check that inputs of a node hold records, and that nodes in its options are artefacts.

    Raises:
        PipelineDefinitionError: An input is an artefact or an export, or an option names
            another node.
    """
    for wanted in node.inputs:
        kind = _kind(known[wanted]) if wanted in known else RECORD
        if kind.exports:
            before = known[wanted].inputs[0]
            reason = (
                f"node {node.name!r} takes its input from {wanted!r}, which is {kind.noun}: files, "
                f"not records; take it from {before!r}, the input of the export"
            )
            raise PipelineDefinitionError(graph, reason)
        if kind.makes_folder:
            reason = (
                f"node {node.name!r} takes its input from {wanted!r}, which is {kind.noun}: a "
                f"folder, not records; {_HINT}, such as index=ppl.{wanted}"
            )
            raise PipelineDefinitionError(graph, reason)
    for option, value in node.operator.__dataops__.options.items():
        for wanted in referenced(value):
            reason = _wrong(wanted, known)
            if reason:
                text = f"node {node.name!r} names {wanted!r} in option {option!r}, {reason}"
                raise PipelineDefinitionError(graph, text)


def _kind(node: OperatorNode) -> OperatorKind:
    return node.operator.__dataops__.spec.kind


def _wrong(wanted: str, known: Mapping[str, OperatorNode]) -> str:
    """Return why a node cannot be the value of an option; empty if it can."""
    if wanted == SOURCE:
        return "which is the input of the pipeline; an option takes an artefact"
    if wanted not in known:
        names = [name for name, node in known.items() if _kind(node).makes_folder]
        near = nearest(wanted, names)
        listed = f"artefacts: {', '.join(names)}" if names else "it has no artefacts"
        hint = f"did you mean {near!r}?" if near else listed
        return f"which is not a node of the pipeline; {hint}"
    if _kind(known[wanted]).makes_folder:
        return ""
    return (
        f"which is {_kind(known[wanted]).noun} operator; an option takes an artefact, the result "
        "of a class with `build`. To read its records, name it in `inputs`"
    )
