"""Write a pipeline of registered operators as YAML for a defs.yaml, or as Python code."""

import textwrap
from collections.abc import Mapping
from pprint import pformat
from typing import Any, Final

import yaml

from dagster_dataops.assets.components.source_position import has_template
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.artefact_options import ArtefactReference
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode

_PLAIN: Final = (str, int, float, bool, type(None))
_WIDTH: Final = 92


def declared_nodes(graph: OperatorGraph) -> list[dict[str, Any]]:
    """Return the nodes of a pipeline as the arguments of an `OperatorDeclaration` each.

    Options that have their default are left out, and inputs that are the node before.

    Raises:
        PipelineDefinitionError: An operator is not registered, has settings, or an option that is
            no plain value.
    """
    declared, before = [], SOURCE
    for node in graph.nodes.values():
        fields = _fields(graph.name, node)
        if node.inputs != (before,):
            fields["inputs"] = list(node.inputs)
        declared.append(fields)
        if not node.operator.__dataops__.spec.kind.holds_files:
            before = node.name
    return declared


def yaml_of(nodes: list[dict[str, Any]]) -> str:
    """Return declared nodes as the field ``operators`` of a defs.yaml, indented by two spaces."""
    escaped = [{name: _escaped(value) for name, value in fields.items()} for fields in nodes]
    text = yaml.safe_dump({"operators": escaped}, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return textwrap.indent(text, "  ")


def python_of(nodes: list[dict[str, Any]]) -> str:
    """Return declared nodes as Python code, a list of `OperatorDeclaration`."""
    calls = [
        "".join(f"{name}={_python(value)},\n" for name, value in fields.items()) for fields in nodes
    ]
    inner = "".join(f"OperatorDeclaration(\n{textwrap.indent(c, '    ')}),\n" for c in calls)
    return f"[\n{textwrap.indent(inner, '    ')}]"


def _python(value: Any) -> str:
    return pformat(value, width=_WIDTH, sort_dicts=False)


def _fields(pipeline: str, node: OperatorNode) -> dict[str, Any]:
    parts = node.operator.__dataops__.spec.parts
    if not parts:
        return {"name": node.name, **_operator(pipeline, node.name, node.operator)}
    chain = [_operator(pipeline, node.name, part) for _, part in parts]
    return {"name": node.name, "chain": chain}


def _operator(pipeline: str, name: str, operator: Operator) -> dict[str, Any]:
    invocation = operator.__dataops__
    if not invocation.spec.group:
        reason = f"node {name!r} is a function outside of a group, which YAML cannot name"
        raise PipelineDefinitionError(pipeline, reason)
    if invocation.settings != type(operator)(**invocation.chosen).__dataops__.settings:
        reason = f"node {name!r} has execution settings, which are not written"
        raise PipelineDefinitionError(pipeline, reason)
    options = {key: _value(pipeline, name, value) for key, value in invocation.chosen.items()}
    return {
        "operator": invocation.spec.qualified_name,
        **({"options": options} if options else {}),
    }


def _value(pipeline: str, name: str, value: Any) -> Any:
    """Return the value of an option as YAML has it."""
    if isinstance(value, ArtefactReference):
        return {"artefact": value.node}
    if isinstance(value, Mapping):
        return {
            _plain(pipeline, name, key): _value(pipeline, name, item) for key, item in value.items()
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value) if isinstance(value, (set, frozenset)) else value
        return [_value(pipeline, name, item) for item in items]
    return _plain(pipeline, name, value)


def _plain(pipeline: str, name: str, value: Any) -> Any:
    """Return a value that YAML and Python write alike; refuse any other."""
    if type(value) not in _PLAIN:
        reason = f"node {name!r} has the option {value!r:.80}, which YAML cannot hold"
        raise PipelineDefinitionError(pipeline, reason)
    return value


def _escaped(value: Any) -> Any:
    """Return a value with its templates between ``raw`` tags, which Dagster leaves alone."""
    if isinstance(value, str) and has_template(value):
        return f"{{% raw %}}{value}{{% endraw %}}"
    if isinstance(value, dict):
        return {key: _escaped(item) for key, item in value.items()}
    return [_escaped(item) for item in value] if isinstance(value, list) else value
