"""Metadata of a result: its page, its commands, and the difference from the result before."""

import shlex
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.markdown import cell, fenced, in_window
from dagster_dataops.assets.metadata.metadata_keys import (
    DIFFERENCE,
    ROWS_CHANGED,
    ROWS_GONE,
    ROWS_NEW,
    TRACE,
    VIEW,
)
from dagster_dataops.errors import DataOpsError
from dagster_dataops.operators.kinds.kind import Tracing
from dagster_dataops.operators.kinds.kind_table import kind_named

if TYPE_CHECKING:
    from dagster_dataops.execution.run_report import RunReport


_MOST_COMPARED: Final = 1_000_000  # lines of a result; it takes some seconds


def view_metadata(address: str | None) -> dict[str, Any]:
    """Return the link to the page with the records of a result; empty without an address."""
    return {} if address is None else {VIEW: dg.MetadataValue.url(address)}


def difference_metadata(report: "RunReport") -> dict[str, Any]:
    """Return how many records differ from the replaced result, and why; empty if none was kept.

    For results of more than a million lines it is the command that compares them.
    """
    if not report.replaced:
        return {}
    from dagster_dataops.pipelines.history.difference import changed_since

    command = f"python -m dagster_dataops diff {shlex.quote(str(report.folder))}"
    text = f"With samples:\n\n{fenced(f'{command} {report.replaced}', '')}\n"
    if max(report.manifest.rows_out, report.manifest.rows_in) > _MOST_COMPARED:
        return {DIFFERENCE: dg.MetadataValue.md(in_window(text))}
    try:
        lines = changed_since(report.folder, report.replaced)
    except (DataOpsError, OSError) as error:  # replaced in the meantime, for example
        return {DIFFERENCE: f"not known: {error}"}
    causes = [f"- {number:,}: {cell(cause)}" for cause, number in lines.causes.most_common()]
    said = [*(["By cause:", "", *causes, ""] if causes else []), text]
    if lines.by_content:
        said.insert(0, f"Matched by content, not by input record: {cell(lines.by_content)}.\n")
    return {
        ROWS_NEW: lines.new,
        ROWS_GONE: lines.gone,
        ROWS_CHANGED: lines.changed,
        DIFFERENCE: dg.MetadataValue.md(in_window("\n".join(said))),
    }


def trace_metadata(report: "RunReport") -> dict[str, Any]:
    """Return the commands that trace records of a result; empty if they cannot be traced.

    They are Markdown, padded so that Dagster shows it on request: a path in the table would widen
    its column, and the end of other values would not be seen.
    """
    manifest = report.manifest
    traced = kind_named(manifest.kind).trace
    if not manifest.traced or not (traced is Tracing.RECORD or manifest.combined):
        return {}
    command = f"python -m dagster_dataops trace {shlex.quote(str(report.folder))}"
    commands = f"{command} --line 1\n{command} --source-line 1"
    text = (
        "From which source line a record came, and what became of a source line:\n\n"
        f"{fenced(commands, '')}\n"
    )
    return {TRACE: dg.MetadataValue.md(in_window(text))}
