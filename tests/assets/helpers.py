"""Build definitions of a test's pipeline and run them in this process."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import orjson

from dagster_dataops import (
    DataOpsResource,
    JsonlDataset,
    Operator,
    Pipeline,
    build_definitions,
    pipeline,
)
from dagster_dataops.assets.automation.jobs import JOB_KINDS
from dagster_dataops.datasets.writer import write_records
from dagster_dataops.foundation.hashing.file_digests import content_digest
from dagster_dataops.pipelines.local_run import run_operator
from tests.registries import OperatorRegistry

LOCK_SECONDS = 0.2
Records = Callable[[int], Path]  # the type of the fixture `records`


def pipeline_of(name: str = "docs", **operators: Operator) -> Pipeline:
    """Return a pipeline of nodes in a row."""
    with pipeline(name) as ppl:
        for node, operator in operators.items():
            ppl.add(node, operator)
    return ppl


def resource_at(root: Path) -> DataOpsResource:
    return DataOpsResource(root=str(root), lock_seconds=LOCK_SECONDS)


def definitions_of(
    ppl: Pipeline, source: Any, root: Path, *, others: Sequence[Any] = (), **keywords: Any
) -> dg.Definitions:
    """Return the pipeline's definitions with all its jobs, and with further assets of the test."""
    keywords.setdefault("jobs", JOB_KINDS)
    ours = build_definitions(ppl, source=source, resource=resource_at(root), **keywords)
    return dg.Definitions.merge(ours, dg.Definitions(assets=list(others)))


def execute(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    run_config: Mapping[str, Any] | None = None,
    *,
    only: Sequence[Sequence[str]] | None = None,
    **keywords: Any,
) -> dg.ExecuteInProcessResult:
    """Materialize everything, or ``only`` some asset keys."""
    job = definitions.resolve_implicit_global_asset_job_def()
    return job.execute_in_process(
        instance=instance,
        run_config=run_config,
        asset_selection=[dg.AssetKey(list(key)) for key in only] if only else None,
        **keywords,
    )


def check_alone(
    definitions: dg.Definitions, instance: dg.DagsterInstance, *checks: Any, **keywords: Any
) -> dg.ExecuteInProcessResult:
    """Run only these checks: their keys, or (name of a node, name of a check)."""
    keys = [
        one
        if isinstance(one, dg.AssetCheckKey)
        else dg.AssetCheckKey(dg.AssetKey(["docs", one[0]]), one[1])
        for one in checks
    ]
    job = dg.define_asset_job("alone", selection=dg.AssetSelection.checks(*keys))
    merged = dg.Definitions.merge(definitions, dg.Definitions(jobs=[job]))
    return merged.resolve_job_def("alone").execute_in_process(instance=instance, **keywords)


def asset_of(definitions: dg.Definitions, *key: str) -> dg.AssetsDefinition:
    return definitions.resolve_assets_def(list(key))


def spec_of(definitions: dg.Definitions, *key: str) -> dg.AssetSpec:
    return definitions.resolve_asset_graph().get(dg.AssetKey(list(key))).to_asset_spec()


def metadata_of(result: dg.ExecuteInProcessResult, *key: str) -> dict[str, Any]:
    """Return the values of a materialization's metadata without the prefix ``dagster_dataops/``."""
    wanted = dg.AssetKey(list(key))
    events = [e for e in result.get_asset_materialization_events() if e.asset_key == wanted]
    found = events[-1].materialization.metadata
    return {name.removeprefix("dagster_dataops/"): value.value for name, value in found.items()}


def tags_of(instance: dg.DagsterInstance, *key: str) -> Mapping[str, str]:
    """Return the tags of the last materialization of an asset."""
    event = instance.get_latest_materialization_event(dg.AssetKey(list(key)))
    assert event is not None
    assert event.asset_materialization is not None
    return event.asset_materialization.tags or {}


def checks_of(result: dg.ExecuteInProcessResult) -> list[dg.AssetCheckEvaluation]:
    """Return the results of the checks of a run, in order."""
    return result.get_asset_check_evaluations()


def registry_of_calls() -> OperatorRegistry:
    """Return a registry whose operators can be called in Python."""
    return OperatorRegistry(run_operator)


def dataset_of(path: Path, rows: Iterable[object]) -> JsonlDataset:
    """Write records to a file and return it as a dataset of the package."""
    return write_records(path, rows, "test")


def digest_of(path: Path) -> str:
    """Return the digest of a file that is the data version of its asset."""
    return content_digest(path)


def write_jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows))
    return path


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def result_of(root: Path, *key: str) -> list[dict[str, Any]]:
    return read_jsonl(root.joinpath(*key) / f"{key[-1]}_results.jsonl")


def log_of(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    """Return the log lines of the steps of a run."""
    entries = instance.all_logs(run_id)
    return [entry.user_message for entry in entries if not entry.is_dagster_event]


def numbered(count: int) -> Iterator[dict[str, Any]]:
    return ({"id": number, "text": f"text {number}"} for number in range(count))


def polars_frame() -> Any:
    """Return polars' DataFrame; importing polars starts threads, so only some tests do."""
    import polars as pl

    return pl.DataFrame
