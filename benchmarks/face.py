"""Pipelines as Dagster assets against plain assets, in one process: the cost of the assets.

``python -m benchmarks.face SPECIFICATION``, with the keys

- measure: ``definitions`` or ``chain``;
- layout: ``steps`` or ``single_step``;
- nodes: the number of operators, and of plain assets;
- rounds: the number of rounds;
- check: whether the operators have the check ``failed_records``; plain assets have none;
- mode (chain): concurrency mode of the operators;
- threaded (chain): whether the process has another thread, as Dagster's own have when runs are
  launched from the UI or by a schedule;
- source (chain): the input;
- out: an empty folder for results and the instance.

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

from dagster_dataops import DataOpsResource, build_definitions, data, data_register, pipeline

SOURCE = "texts"
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@data_register("data.face")
def same(record: dict, input_key: str = "text", suffix: str = "!", times: int = 1) -> dict:
    """Return the record as it is."""
    return record


def ours(given: dict[str, Any]) -> dg.Definitions:
    """Return a chain of operators, each with one option."""
    with pipeline("ours") as ppl:
        for number in range(given["nodes"]):
            operator = data.face.same(suffix=str(number), _concurrency_mode=given["mode"])
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


def _taken_of(run: Callable[[Any], None], jobs: Sequence[Any], number: int) -> list[Any]:
    """Return the seconds of each job; in every other round the last job runs first."""
    order = jobs if number % 2 else jobs[::-1]
    found = [taken(lambda job=job: run(job)) for job in order]
    return found if number % 2 else found[::-1]


def main() -> None:
    """Measure and report."""
    usual = {"check": False, "mode": "single", "threaded": False, "source": "texts.jsonl"}
    given = {**usual, **json.loads(sys.argv[1])}
    measured = {"definitions": definitions, "chain": chain}[given["measure"]](given)
    print(json.dumps({"rounds": measured}))


if __name__ == "__main__":
    main()
