"""`html_of`: datasets, pipelines, operators, reports, traces and differences in a notebook.

Texts of records are shown as text, never as markup.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from dagster_dataops.configuration import config
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import DataOpsError, PipelineDefinitionError
from dagster_dataops.execution.run_report import RunReport
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.definition.operator import Operator, OperatorMeta
from dagster_dataops.operators.registry import OperatorRegistry
from dagster_dataops.operators.secrets.secret_options import shown
from dagster_dataops.pipelines.history.difference import Difference
from dagster_dataops.pipelines.node_state import node_states
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.pipelines.reporting.excerpts import excerpt
from dagster_dataops.pipelines.tracing.trail import Trace
from dagster_dataops.records import text_of

_ROWS: Final = 10
_COLUMNS: Final = 20
_CHARACTERS: Final = 200
_OPTIONS: Final = 300  # characters of an operator in a table of nodes


def html_of(value: object) -> str:
    """Return a value as HTML.

    Args:
        value: A dataset, of which the first records are shown; a pipeline; a group of operators or
            the registry of all; an operator or its class; the report of a run; a trace;
            or the difference of two versions.

    Raises:
        TypeError: It is none of these.
    """
    for kind, show in _SHOWN.items():
        if isinstance(value, kind):
            return "".join(show(value))
    msg = f"no HTML for a {type(value).__name__}"
    raise TypeError(msg)


def _dataset(dataset: JsonlDataset) -> Iterator[str]:
    size = f"{dataset.size_bytes:,} bytes"
    rows = size if dataset.rows is None else f"{counted(dataset.rows, 'records')}, {size}"
    yield _title(f"{dataset.location}: {rows}")
    try:
        records = dataset.head(_ROWS)
    except DataOpsError as error:
        yield f"<p>{escape(str(error))}</p>"
        return
    yield from _records(records)
    if dataset.rows is None or dataset.rows > len(records):
        yield f"<p>The first {counted(len(records), 'records')}.</p>"


def _records(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = names[:_COLUMNS]
    yield _table(
        ["", *map(text_of, columns)],
        (
            [str(number), *(excerpt(record.get(name, ""), _CHARACTERS) for name in columns)]
            for number, record in enumerate(records)
        ),
    )
    if left := len(names) - len(columns):
        yield f"<p>{counted(left, 'columns')} more.</p>"


def _pipeline(ppl: Pipeline) -> Iterator[str]:
    try:
        graph = ppl.graph
    except PipelineDefinitionError:  # its `with` block has not ended
        yield f"<pre>{escape(repr(ppl))}</pre>"
        return
    root = config.results_root() / ppl.name
    states = node_states(graph, root)
    yield _title(
        f"Pipeline {ppl.name}: {counted(len(graph.nodes), 'nodes')}, results in {root.path}"
    )
    yield _table(
        ["inputs", "node", "state", "operator"],
        (
            [
                ", ".join(node.inputs),
                node.name,
                states[node.name],
                excerpt(repr(node.operator), _OPTIONS),
            ]
            for node in graph.ordered()
        ),
    )


def _report(report: RunReport) -> Iterator[str]:
    manifest = report.manifest
    facts = {
        "records in": f"{manifest.rows_in:,}",
        "records out": f"{manifest.rows_out:,}",
        "failed": f"{manifest.failed:,}" if manifest.failed else "",
        "failed records": str(report.error_path or ""),
        "resumed": f"{report.rows_resumed:,}" if report.rows_resumed else "",
        "seconds": f"{report.seconds:,.1f}",
        "exported to": str(report.exported or ""),
        "notes": "\n".join(report.notes),
    }
    reused = ", published before" if report.reused else ""
    yield _title(f"Result of {report.node}{reused}")
    yield _table(["fact", "value"], ([name, text] for name, text in facts.items() if text))
    for output in report.outputs.values() or [report]:
        yield from _dataset(output.dataset)


def _registry(registry: OperatorRegistry) -> Iterator[str]:
    groups = registry.groups()
    yield _title(f"Operators of data: {counted(len(groups), 'groups')}")
    yield _table(
        ["group", "operators"], ([name, ", ".join(registry.operators(name))] for name in groups)
    )


def _class(operator: OperatorMeta) -> Iterator[str]:
    spec = getattr(operator, "__dataops_spec__", None)
    if spec is not None:
        yield _title(spec.reference)
        yield from _description(spec.description)
        yield _options({option.name: shown(option.name, option.default) for option in spec.options})
        return
    members = [getattr(operator, name) for name in dir(operator)]
    yield _title(f"Group data.{operator.__dataops_group__}: {counted(len(members), 'operators')}")
    yield _table(
        ["operator", "does", "options"],
        (
            [
                member.__dataops_spec__.name,
                _sentence(member.__dataops_spec__.description),
                ", ".join(option.name for option in member.__dataops_spec__.options),
            ]
            for member in members
        ),
    )


def _operator(operator: Operator) -> Iterator[str]:
    invocation = operator.__dataops__
    yield _title(repr(operator))
    yield from _description(invocation.spec.description)
    yield _options({name: shown(name, value) for name, value in invocation.options.items()})


def _text(value: Trace | Difference) -> Iterator[str]:
    yield f"<pre>{escape(str(value))}</pre>"


def _options(options: Mapping[str, str]) -> str:
    rows = ([name, text] for name, text in options.items())
    return _table(["option", "value"], rows) if options else ""


def _description(text: str) -> Iterator[str]:
    if sentence := _sentence(text):
        yield f"<p>{escape(sentence)}</p>"


def _sentence(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def _title(text: str) -> str:
    return f"<p><strong>{escape(text)}</strong></p>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_SHOWN: Final[Mapping[type, Callable[[Any], Iterator[str]]]] = {
    JsonlDataset: _dataset,
    Pipeline: _pipeline,
    RunReport: _report,
    Trace: _text,
    Difference: _text,
    OperatorRegistry: _registry,
    OperatorMeta: _class,
    Operator: _operator,
}
