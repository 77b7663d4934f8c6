"""`fault_of_reads`: check that the columns which count for an operator are those that it reads."""

import copy
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import isawaitable
from pathlib import Path
from typing import Any, Final

import orjson

from dagster_dataops.configuration import config
from dagster_dataops.execution.records.lifecycle import run_alone
from dagster_dataops.operators.bound_methods import record_function
from dagster_dataops.operators.definition.operator import Operator, exporting
from dagster_dataops.operators.options.settings import ALLOWED
from dagster_dataops.operators.outcomes.recorded_record import RecordedRecord
from dagster_dataops.operators.read_terms import terms_of
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode
from dagster_dataops.pipelines.local_run import run_graph
from dagster_dataops.records import Record

_NODE: Final = "node"
_NEW: Final = "column_that_no_operator_knows"


def fault_of_reads(operator: Operator, records: Sequence[Record]) -> str:
    """Return the fault in the columns that count for an operator: it must read these and no others.

    Args:
        operator: A record operator; nothing is exported.
        records: Examples.

    Returns:
        The fault in words; empty if there is none.

    Raises:
        OperatorOptionError: It is no record operator.
    """
    undeclared = _undeclared(operator, records)
    if undeclared:
        return f"it reads columns that it does not declare: {', '.join(undeclared)}"
    variants = _variants(records)
    with tempfile.TemporaryDirectory(prefix="dataops-") as folder:
        kept, anew = (_runner(operator, Path(folder), reuses) for reuses in (True, False))
        if kept(records) != anew(records):
            return "two calls for the same records gave different results"
        different = (text for text, changed in variants if kept(changed) != anew(changed))
        wrong = next(different, None)
    if wrong is None:
        return ""
    return f"{wrong}, and a kept outcome is not what a call returns"


def _runner(operator: Operator, folder: Path, reuses: bool) -> Callable[[Any], bytes]:  # noqa: FBT001
    """Return the function that runs an operator and returns its result as JSON."""
    tried = exporting(copy.copy(operator), None)
    settings = replace(
        tried.__dataops__.settings,
        reuse_outcomes=reuses,
        ignore_errors=True,
        stop_after_failures=0,
        missing=ALLOWED,
        save_data=True,
    )
    tried.__dataops__ = replace(tried.__dataops__, settings=settings)
    graph = OperatorGraph.of("", [OperatorNode(_NODE, tried, (SOURCE,))])
    root = folder / ("kept" if reuses else "anew")

    def run(records: list[Record]) -> bytes:
        with config.temporary(data_process_path=root, data_process_resume=reuses):
            return orjson.dumps(run_graph(graph, copy.deepcopy(records)))

    return run


def _undeclared(operator: Operator, records: Sequence[Record]) -> list[str]:
    """Return columns that an operator with declared columns reads one by one besides these."""
    terms = terms_of(operator.__dataops__)
    if terms is None or not terms.trusted or operator.__dataops__.spec.contextual:
        return []
    forward, names = record_function(operator), set[str]()
    for record in records:
        recorded = RecordedRecord(copy.deepcopy(record))
        with suppress(Exception):  # a record that fails has no outcome
            returned = forward(recorded)
            if isawaitable(returned):
                run_alone(returned)
        names.update(recorded.log.columns)
    return sorted(names - terms.columns)


def _variants(records: Sequence[Record]) -> Iterator[tuple[str, list[Record]]]:
    """Yield changes of records in words, each of one column, and the records after it."""
    rows = list(records)
    names = list(dict.fromkeys(name for record in rows for name in record))
    yield "a column was added", [{**record, _NEW: "new"} for record in rows]
    yield "a column was added in front", [{_NEW: 1, **record} for record in rows]
    reverse = [dict(reversed(record.items())) for record in rows]
    yield "the columns have another order", reverse
    for name in names:
        without = [{key: record[key] for key in record if key != name} for record in rows]
        yield f"column {name!r} was removed", without
        for value in (None, "another value", 7):
            changed = [{**record, name: value} for record in rows]
            yield f"column {name!r} has another value", changed
