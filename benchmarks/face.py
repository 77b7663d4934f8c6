"""Pipelines as Dagster assets against plain assets, in one process: the cost of the assets.

``python -m benchmarks.face SPECIFICATION``, with the keys

- measure: ``definitions``, ``chain`` or ``node``;
- layout: ``steps`` or ``single_step``;
- nodes: the number of operators, and of plain assets;
- rounds: the number of rounds;
- check: whether the operators have the check ``failed_records``; plain assets have none;
- mode (chain): concurrency mode of the operators;
- threaded (chain): whether the process has another thread, as Dagster's own have when runs are
  launched from the UI or by a schedule;
- source (chain): the input;
- out: an empty folder for results and the instance.

The measure ``node`` compares each node with an asset that does the same by hand: it gets records
and returns them, an IO manager pickles them, and the asset adds metadata and the result of one
check. In each round a third chain has neither metadata nor check.

Prints a line of JSON: for every round the seconds and CPU seconds of operators and plain assets.
"""

import gc
import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import orjson

from dagster_dataops import DataOpsResource, build_definitions, data, data_register, pipeline

SOURCE = "texts"
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@data_register("data.face")
def append_suffix(record: dict, input_key: str = "text", suffix: str = "!", times: int = 1) -> dict:
    """Append a text. An operator that changes no record would cost a line in the log."""
    record[input_key] += suffix * times
    return record


@data_register("data.face")
def reverse_text(record: dict) -> dict:
    """Reverse the text."""
    record["text"] = record["text"][::-1]
    return record


def ours(given: dict[str, Any]) -> dg.Definitions:
    """Return a chain of operators, each with one option."""
    with pipeline("ours") as ppl:
        for number in range(given["nodes"]):
            operator = data.face.append_suffix(suffix=str(number), _concurrency_mode=given["mode"])
            ppl.add(f"node_{number}", operator)
    checked = {} if given["check"] else {"max_error_rate": None}
    return build_definitions(
        ppl,
        source=given["source"],
        resource=DataOpsResource(root=str(Path(given["out"]) / "results")),
        layout=given["layout"],
        **checked,
    )


def plain(given: dict[str, Any]) -> dg.Definitions:
    """Return a chain of assets that do nothing, in one step or in one step each."""
    names = [f"node_{number}" for number in range(given["nodes"])]
    chain = [_chain_in_one(names)] if given["layout"] == "single_step" else _chain(names)
    # The source is a file, as for operators: Dagster asks for its data version.
    assets = [dg.AssetSpec(SOURCE), *chain]
    job = dg.define_asset_job("plain_pipeline", selection="*")
    return dg.Definitions(assets=assets, jobs=[job], executor=dg.in_process_executor)


def _chain(names: list[str]) -> list[dg.AssetsDefinition]:
    return [_asset(name, before) for name, before in zip(names, [None, *names], strict=False)]


def _asset(name: str, before: str | None) -> dg.AssetsDefinition:
    ins = {"before": dg.AssetIn(before)} if before else {}

    @dg.asset(name=name, ins=ins, deps=[] if before else [SOURCE])
    def nothing(**loaded): ...

    return nothing


def _chain_in_one(names: list[str]) -> dg.AssetsDefinition:
    before = zip(names, [None, *names], strict=False)

    @dg.multi_asset(
        outs={name: dg.AssetOut(is_required=False) for name in names},
        deps=[SOURCE],
        internal_asset_deps={name: {dg.AssetKey(up or SOURCE)} for name, up in before},
        can_subset=True,
    )
    def nothing():
        for name in names:
            yield dg.Output(None, name)

    return nothing


def taken(action: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds and CPU seconds of an action."""
    gc.collect()
    began, cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - began, time.process_time() - cpu


def definitions(given: dict[str, Any]) -> list[Any]:
    """Build and resolve operators, in either layout, and as many plain assets, in turn."""

    def resolve_ours() -> None:
        ours(given).get_repository_def()

    def resolve_plain() -> None:
        plain({**given, "layout": "steps"}).get_repository_def()

    resolve_ours()
    resolve_plain()
    return [(taken(resolve_ours), taken(resolve_plain)) for _ in range(given["rounds"])]


def chain(given: dict[str, Any]) -> list[Any]:
    """Run both in turn, in this process, in one instance on disk."""
    if given["threaded"]:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    jobs = [build(given).resolve_job_def(f"{build.__name__}_pipeline") for build in (ours, plain)]
    home = Path(given["out"]) / "home"
    home.mkdir()
    overrides = {"telemetry": {"enabled": False}}
    with dg.DagsterInstance.local_temp(str(home), overrides=overrides) as instance:

        def run(job: dg.JobDefinition) -> None:
            assert job.execute_in_process(run_config=QUIET, instance=instance).success

        for job in jobs:
            run(job)
        return [_taken_of(run, jobs, number) for number in range(given["rounds"])]


def nodes(given: dict[str, Any]) -> dg.Definitions:
    """Return a chain of operators that change a text, with their usual check."""
    with pipeline("ours") as ppl:
        for number in range(given["nodes"]):
            ppl.add(f"node_{number}", data.face.reverse_text(_concurrency_mode=given["mode"]))
    root = str(Path(given["out"]) / "results")
    return build_definitions(ppl, source=given["source"], resource=DataOpsResource(root=root))


def by_hand(given: dict[str, Any]) -> dg.Definitions:
    """Return a chain of assets with metadata and a check, which an IO manager pickles."""
    return _pickled(given, _checked_asset)


def bare(given: dict[str, Any]) -> dg.Definitions:
    """Return a chain of assets without metadata and checks, which an IO manager pickles."""
    return _pickled(given, _bare_asset)


def _pickled(given: dict[str, Any], asset: Callable[..., dg.AssetsDefinition]) -> dg.Definitions:
    names = [f"node_{number}" for number in range(given["nodes"])]
    source = Path(given["source"])
    assets = [asset(*pair, source) for pair in zip(names, [None, *names], strict=False)]
    manager = dg.FilesystemIOManager(base_dir=str(Path(given["out"]) / asset.__name__))
    job = dg.define_asset_job(f"{given['job']}_pipeline", selection="*")
    resources = {"io_manager": manager}
    return dg.Definitions(
        assets=assets, jobs=[job], resources=resources, executor=dg.in_process_executor
    )


def _read(source: Path, loaded: dict[str, Any]) -> list[dict]:
    """Return the records of the asset before; the first asset reads those of the source."""
    return loaded["before"] if loaded else list(map(orjson.loads, source.open("rb")))


def _bare_asset(name: str, before: str | None, source: Path) -> dg.AssetsDefinition:
    @dg.asset(name=name, ins={"before": dg.AssetIn(before)} if before else {})
    def made(**loaded) -> list[dict]:
        return [reverse_text(record) for record in _read(source, loaded)]

    return made


def _checked_asset(name: str, before: str | None, source: Path) -> dg.AssetsDefinition:
    ins = {"before": dg.AssetIn(before)} if before else {}
    check = dg.AssetCheckSpec("failed_records", asset=name, blocking=True)

    @dg.asset(name=name, ins=ins, check_specs=[check])
    def made(**loaded):
        records, result, failed = _read(source, loaded), [], 0
        for record in records:
            try:
                result.append(reverse_text(record))
            except Exception:  # noqa: BLE001 - of any code of a user
                failed += 1
        yield dg.Output(result, metadata=_metadata(records, result, failed))
        found = {"rows_failed": failed, "share": failed / len(records)}
        yield dg.AssetCheckResult(passed=not failed, check_name="failed_records", metadata=found)

    return made


def _metadata(records: list[dict], result: list[dict], failed: int) -> dict[str, Any]:
    """Return what a node shows, as far as a user would write it: counts, rows and columns."""
    columns = list(result[0])
    rows = [
        columns,
        ["---"] * len(columns),
        *([str(row[name]) for name in columns] for row in result[:5]),
    ]
    kinds = [dg.TableColumn(name, type(value).__name__) for name, value in result[0].items()]
    return {
        "rows_in": len(records),
        "rows_failed": failed,
        "dagster/row_count": len(result),
        "dagster/column_schema": dg.TableSchema(columns=kinds),
        "preview": dg.MetadataValue.md("\n".join(f"| {' | '.join(row)} |" for row in rows)),
    }


def node(given: dict[str, Any]) -> list[Any]:
    """Run the three chains in turn, in this process, in an instance in memory."""
    builds = (nodes, by_hand, bare)
    jobs = [_job_of(build, given) for build in builds]
    with dg.DagsterInstance.ephemeral() as instance:

        def run(job: dg.JobDefinition) -> None:
            assert job.execute_in_process(run_config=QUIET, instance=instance).success

        for job in jobs:
            run(job)
        return [_taken_of(run, jobs, number) for number in range(given["rounds"])]


def _job_of(build: Callable[[dict[str, Any]], dg.Definitions], given: dict[str, Any]) -> Any:
    name = "ours" if build is nodes else build.__name__
    return build({**given, "job": name}).resolve_job_def(f"{name}_pipeline")


def _taken_of(run: Callable[[Any], None], jobs: Sequence[Any], number: int) -> list[Any]:
    """Return the seconds of each job; in every other round the last job runs first."""
    order = jobs if number % 2 else jobs[::-1]
    found = [taken(lambda job=job: run(job)) for job in order]
    return found if number % 2 else found[::-1]


def main() -> None:
    """Measure and report."""
    usual = {"check": False, "mode": "single", "threaded": False, "source": "texts.jsonl"}
    given = {**usual, **json.loads(sys.argv[1])}
    measured = {"definitions": definitions, "chain": chain, "node": node}[given["measure"]](given)
    print(json.dumps({"rounds": measured}))


if __name__ == "__main__":
    main()
