"""The commands that trace records of a result, and the link to its page, as metadata."""

import shlex
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_dataops.assets.metadata.markdown import fenced, in_window
from dagster_dataops.assets.metadata.metadata_keys import TRACE, VIEW
from dagster_dataops.operators.kinds.kind import Tracing
from dagster_dataops.operators.kinds.kind_table import kind_named

if TYPE_CHECKING:
    from dagster_dataops.execution.run_report import RunReport


def view_metadata(address: str | None) -> dict[str, Any]:
    """Return the link to the page with the records of a result; nothing without an address."""
    return {} if address is None else {VIEW: dg.MetadataValue.url(address)}


def trace_metadata(report: "RunReport") -> dict[str, Any]:
    """Return the commands for a result; nothing if its records cannot be traced.

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
