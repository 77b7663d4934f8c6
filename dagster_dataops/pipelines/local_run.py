"""Run operators and graphs in plain Python, below the configured root."""

import logging
import os
import shlex
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.publish.other_versions import refuse_newer
from dagster_dataops.checkpoints.resume.resume_policy import (
    ChosenRecords,
    ResumePolicy,
    chosen_only,
)
from dagster_dataops.configuration import Resume, config
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.writer import write_records
from dagster_dataops.errors import ConfigurationError, InputError, RetryRefusedError
from dagster_dataops.execution.executor import OperatorExecutor
from dagster_dataops.execution.progress import ConsoleProgress
from dagster_dataops.execution.run_report import RunContext, RunReport
from dagster_dataops.foundation.concurrency.background import deleting
from dagster_dataops.foundation.places.bucket import local_path
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.operators.definition.operator import Operator, with_artefacts
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode
from dagster_dataops.pipelines.graph.source_check import with_source

_LOG: Final = logging.getLogger("dagster_dataops")


def run_operator(operator: Operator, data: object) -> Any:
    """Run one operator over ``data``, as calling an operator does.

    Returns:
        The resulting records, or the path of the exported file after ``set_output``; of an operator
        with several results a dict of these by the name of the output.
    """
    name = operator.__dataops__.spec.name
    graph = OperatorGraph.of("", [OperatorNode(name, operator, (SOURCE,))])
    return run_graph(graph, data)


def run_graph(graph: OperatorGraph, data: object) -> Any:
    """Run every node over ``data``.

    Returns:
        The last node's records, or the path of its export or artefact; of a node with several
        results a dict of these by the name of the output.
    """
    with tempfile.TemporaryDirectory(prefix="dataops-") as scratch:
        report = materialize(graph, data, scratch=Path(scratch))[graph.last.name]
        if report.outputs:
            return {name: _result(output) for name, output in report.outputs.items()}
        return _result(report)


def _result(report: RunReport) -> Any:
    if report.exported is not None:
        return str(report.exported)
    if report.artefact is not None:
        return report.artefact
    records = report.dataset.read()
    _check_ours(report)
    return records


def materialize(graph: OperatorGraph, data: object, *, scratch: Path) -> dict[str, RunReport]:
    """Run every node over ``data`` and return the reports by node name.

    ``scratch`` is the folder for temporary results: given records, and nodes with
    ``_save_data=False``, whose own folder may be locked by another run.

    Raises:
        NewerVersionError: A node has files of a newer version; no node has run.
    """
    graph = with_source(graph, data)
    for node in graph.nodes.values():  # before one runs and fills a shared cache
        _ = node.operator.__dataops__.spec.code_version, node.operator.__dataops__.identity_parts
    context = plain_context()
    _warn_of_old_code(context, graph)
    _check_node(context, graph)
    saved = config.results_root() / graph.name
    if len(graph.nodes) > 1:
        for node in filter(_saves, graph.nodes.values()):
            refuse_newer(NodeFolder.of(saved / node.name))
    source = as_dataset(_without_streams(context, data, saved), scratch / f"{SOURCE}.jsonl")
    results: dict[str, JsonlDataset] = {SOURCE: source}
    makers = graph.results
    reports: dict[str, RunReport] = {}
    for planned in graph.ordered():
        built = {name: reports[name].artefact for name in planned.artefacts}
        node = replace(planned, operator=with_artefacts(planned.operator, built))
        folder = NodeFolder.of((saved if _saves(node) else Root(scratch)) / node.name)
        inputs = [results[name] for name in node.inputs]
        remade = any(not reports[makers[name]].reused for name in node.inputs if name != SOURCE)
        whole = bool(node.operator.__dataops__.spec.kind.as_a_whole) and len(graph.nodes) > 1
        report = _run_node(context, node, inputs, folder, else_anew=remade or whole)
        if report.error_path is not None:
            _warn_of_failures(node, report, report.error_path)
        results |= {name: output.dataset for name, output in report.results.items()}
        reports[node.name] = report
    deleting.finish()  # the caller may delete the folders next
    if any(map(_saves, graph.nodes.values())):
        _LOG.info("see the records: python -m dagster_dataops view %s", shlex.quote(str(saved)))
    return reports


def _warn_of_old_code(context: RunContext, graph: OperatorGraph) -> None:
    """Warn of nodes whose operator was defined again with other code, as in a notebook."""
    for node in graph.nodes.values():
        parts = [part for _, part in node.operator.__dataops__.spec.parts] or [node.operator]
        for operator in parts:
            if not type(operator).__dataops_registry__.is_present(operator):
                name = operator.__dataops__.spec.reference
                context.progress.warn(
                    node.name,
                    f"runs the code of an earlier definition of {name}; "
                    "define the pipeline again to run the present one",
                )


def _check_node(context: RunContext, graph: OperatorGraph) -> None:
    """Check that the setting ``data_process_resume`` names a node of the graph, if any."""
    resume = context.resume
    if isinstance(resume, ChosenRecords) and resume.node and resume.node not in graph.nodes:
        names = ", ".join(graph.nodes)
        allowed = f"for a node of the pipeline: {names}"
        raise ConfigurationError("data_process_resume", vars(resume), allowed)


def _without_streams(context: RunContext, data: object, saved: Root) -> object:
    """Return ``data``. A stream is written to a dataset, and the dataset is returned."""
    if isinstance(data, (list, dict, str, os.PathLike, JsonlDataset)):
        return data
    from dagster_dataops.execution.runners.given_stream import is_stream  # import takes 30 ms

    return _written(context, data, saved) if is_stream(data) else data


def _written(context: RunContext, stream: object, saved: Root) -> JsonlDataset:
    """Write a stream to a folder beside the folders of the nodes. It resumes if runs resume."""
    from dagster_dataops.execution.runners.given_stream import given_stream, name_of_stream

    name = name_of_stream(stream)
    folder = NodeFolder.of(saved / SOURCE / name)
    operator = given_stream(name, lambda: stream)
    afresh = chosen_only(context.resume)
    chosen = replace(context, resume=ResumePolicy.AUTO) if afresh else context
    return OperatorExecutor(chosen).run(operator, [], folder).dataset


def _run_node(
    context: RunContext,
    node: OperatorNode,
    inputs: list[JsonlDataset],
    folder: NodeFolder,
    *,
    else_anew: bool,
) -> RunReport:
    """Run one node.

    With ``else_anew`` all records are processed if the failed ones cannot be retried alone: the
    input has just changed, or the operator takes all records at once in a pipeline.
    """
    chosen = context.resume.node if isinstance(context.resume, ChosenRecords) else ""
    if chosen and chosen != node.name:
        context = replace(context, resume=ResumePolicy.AUTO)
    try:
        return OperatorExecutor(context).run(node.operator, inputs, folder)
    except RetryRefusedError:
        if not else_anew:
            raise
        anew = replace(context, resume=ResumePolicy.AUTO)
        return OperatorExecutor(anew).run(node.operator, inputs, folder)


def _check_ours(report: RunReport) -> None:
    """Check that no other run, which shares the folder, has replaced the result meanwhile."""
    if local_path(report.dataset.location) is None:  # each publication has a key of its own
        return
    now = report.dataset.stamp()
    if (now.size, now.modified_ns) != (report.manifest.file_bytes, report.manifest.modified_ns):
        reason = "another run replaced it before it was read; give each its own data_process_path"
        raise InputError(str(report.dataset.path), reason)


def _warn_of_failures(node: OperatorNode, report: RunReport, errors: Path) -> None:
    """Log one warning. Python prints it to standard error if no logging is configured."""
    with errors.open("rb") as file:
        from dagster_dataops.checkpoints.publish.error_rows import parse_error_row  # rare

        first = parse_error_row(file.readline())
    kept = errors if _saves(node) else "a file that is not kept, since _save_data is False"
    _LOG.warning(
        "%s: %s of %s records failed. The first, record %s (%s, line %s): %s: %s. All are in %s",
        node.operator.__dataops__.spec.qualified_name,
        f"{report.manifest.failed:,}",
        f"{report.manifest.rows_in:,}",
        first["index"],
        first.get("path", f"stage {first.get('stage')}"),  # of a stream: no line of a file
        first["line"],
        first["exception"],
        first["message"].removesuffix("."),
        kept,
    )


def _saves(node: OperatorNode) -> bool:
    return node.operator.__dataops__.resolved.save_data


def plain_context() -> RunContext:
    """Return the context of runs in plain Python."""
    resume = config.data_process_resume
    now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return RunContext(
        run=f"python-{_user()}-{now}-{os.urandom(3).hex()}",
        resume=_policy(resume),
        reuse_finished=bool(resume),
        progress=ConsoleProgress(bar=config.data_process_progress),
        root=config.data_process_path,
        whole_result_mb=config.whole_result_mb,
        clients=config.clients,
        cluster=config.cluster,
        result_format=config.result_format,
    )


def _policy(resume: Resume) -> ResumePolicy | ChosenRecords:
    if isinstance(resume, Mapping):
        from dagster_dataops.checkpoints.resume.record_condition import RecordCondition

        RecordCondition.parse(resume["records"])
        return ChosenRecords(**resume)
    if isinstance(resume, str):
        return ResumePolicy(resume)
    return ResumePolicy.AUTO if resume else ResumePolicy.NEVER


def _user() -> str:
    from getpass import getuser  # slow to import

    try:
        return getuser()
    except (KeyError, OSError):
        return "unknown"


def as_dataset(data: object, place: Path) -> JsonlDataset:
    """Return ``data`` as a dataset; records are written to ``place``.

    Raises:
        InputError: ``data`` has an unknown type, or holds values that are not records.
    """
    if isinstance(data, JsonlDataset):
        return data
    if isinstance(data, (str, os.PathLike)):
        return JsonlDataset.of_file(data)
    records: Iterable[object]
    if isinstance(data, Mapping):
        records = [dict(data)]
    elif isinstance(data, Iterable) and not isinstance(data, (bytes, bytearray)):
        records = data
    else:
        reason = "give a list of dicts, one dict, the path of a jsonl file, or a JsonlDataset"
        raise InputError(f"of type {type(data).__name__}", reason)
    return write_records(place, records, "list", scratch=True)
