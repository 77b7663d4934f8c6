"""The executor of this package on some nodes, checkpointed and published, in a separate process.

``python -m benchmarks.ours SPECIFICATION``, with the keys

- source: the input;
- out: the root of the results, an existing folder;
- nodes: pairs of an operator's name and its options, settings included;
- export (optional): a file to export the last node's result to, instead of materializing;
- resume (optional): resume an earlier run;
- store (optional): ``url`` and ``options`` of an object store for the results; the working copy is
  in ``out``.
- upload (optional): ``url`` and ``options`` of an object store, to which the results are sent by
  one plain request each after the run.
- agents (optional): the number of agents, each a process with one worker process of its own.
- warm (optional): materialize the nodes once before the measurement, in a process with another
  thread, which may not fork: the measured run takes the workers of the first.
"""

import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks import operators
from benchmarks.processes import cpu_seconds, peak_memory, tree
from benchmarks.reporting import Stopwatch
from dagster_dataops import chain, config, data, data_register, pipeline
from dagster_dataops.checkpoints.publish import cleanup, other_versions
from dagster_dataops.execution import executor, input_facts, unchanged_result
from dagster_dataops.execution.agent_pool import Command, Instruction, Said
from dagster_dataops.execution.cluster.local_cluster import (
    LocalCluster,
    SubprocessAgent,
    SubprocessAgents,
)
from dagster_dataops.execution.runners import concat_inputs, record_runner
from dagster_dataops.execution.workers.idle_workers import idle_workers
from dagster_dataops.execution.workplaces import asynchronous, processes, single, threads
from dagster_dataops.foundation.hashing import code_parts
from dagster_dataops.operators.definition import shown_options
from dagster_dataops.pipelines import local_run
from dagster_dataops.pipelines.graph import source_check
from dagster_dataops.pipelines.pipeline import Pipeline

# Modules that a run imports when it needs them; imported here, like the modules of the ideal.
LATE = (
    *(asynchronous, processes, single, threads, record_runner, concat_inputs),
    *(local_run, source_check, executor, input_facts, unchanged_result),
    *(cleanup, other_versions, code_parts, shown_options),
)

for function in (
    *operators.EIGHT,
    operators.upper_async,
    operators.clean,
    operators.keep,
    operators.triple,
    operators.score,
    operators.call,
    operators.call_async,
    operators.marked_call,
    operators.marked_upper,
):
    data_register("data.benchmark")(function)
data_register("data.benchmark", rewrite_func="forward_batch")(operators.score_batch)


def operator_of(name: str, options: dict[str, Any]) -> Any:
    """Construct ``name`` of the benchmark, ``group.name`` of the library, or the chain of eight."""
    if name == "eight":
        return chain(*(operator_of(one.__name__, {}) for one in operators.EIGHT), **options)
    group, _, rest = name.rpartition(".")
    return getattr(getattr(data, group or "benchmark"), rest)(**options)


def _use_store(store: dict[str, Any], scratch: str) -> list[str]:
    """Set the root to a new prefix of an object store; return the list of its requests."""
    from dagster_dataops.foundation.places.objects.object_store import ObjectStore

    requests: list[str] = []
    named = ObjectStore.named

    def counted(self: ObjectStore, key: str, action: str) -> Any:
        requests.append(action)
        return named(self, key, action)

    ObjectStore.named = counted  # type: ignore[method-assign]
    config.data_process_scratch = scratch
    config.storage_options.update(store["options"])
    config.data_process_path = f"{store['url']}/{uuid4().hex}"
    return requests


def _upload(paths: list[Path], store: dict[str, Any]) -> None:
    """Send the results to an object store, as a script would."""
    import obstore
    from obstore.store import from_url

    client = from_url(store["url"], config=store["options"], client_options={"allow_http": True})
    for path in paths:
        obstore.put(client, path.name, path)


def _use_agents(count: int) -> dict[str, float]:
    """Run operators by agents of one worker each; return facts about them.

    Returns:
        The number of their reports as ``messages``, and the ``agents_cpu_seconds`` of agents and
        workers until their work is done. An agent does not wait for its workers, so that the CPU
        seconds of the process tree lack them.
    """
    facts = {"messages": 0, "agents_cpu_seconds": 0.0}
    receive, send = SubprocessAgents.receive, SubprocessAgent.send

    def counted(self: SubprocessAgents, seconds: float) -> Any:
        found = receive(self, seconds)
        facts["messages"] += sum(isinstance(message, Said) for _, message in found)
        return found

    def measured(self: SubprocessAgent, instruction: Instruction) -> None:
        if instruction is Command.FINISH:
            facts["agents_cpu_seconds"] += cpu_seconds(tree(self.process.pid))
        send(self, instruction)

    SubprocessAgents.receive = counted  # type: ignore[method-assign]
    SubprocessAgent.send = measured  # type: ignore[method-assign]
    config.cluster = LocalCluster(agents=count, cpus_per_agent=1)
    return facts


def warm_up(ppl: Pipeline, given: dict[str, Any]) -> None:
    """Materialize into a folder of its own; the worker processes stay for the next run.

    Raises:
        RuntimeError: No worker process stayed, so the next run would not be a warm one.
    """
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    config.data_process_path = str(Path(given["out"]) / "warm_up")
    ppl.materialize(Path(given["source"]))
    config.data_process_path = given["out"]
    if not idle_workers:
        msg = "no worker process is idle after the first run"
        raise RuntimeError(msg)


def main() -> None:
    """Run the nodes and report."""
    watch = Stopwatch()
    given = watch.specification
    config.data_process_path = given["out"]
    requests = _use_store(given["store"], given["out"]) if "store" in given else []
    agents = _use_agents(given["agents"]) if "agents" in given else {}
    config.data_process_resume = given.get("resume", False)
    constructed = [operator_of(*node) for node in given["nodes"]]
    if given.get("export"):
        constructed[-1].set_output(given["export"])
    with pipeline("benchmark") as ppl:
        for number, operator in enumerate(constructed):
            ppl.add(f"node{number}", operator)
    report = partial(watch.finish, nodes=len(constructed))
    if given.get("export"):
        report([ppl(given["source"])])
        return
    if given.get("warm"):
        warm_up(ppl, given)
        watch.restart()
    cpu_before = time.process_time()
    reports = list(ppl.materialize(Path(given["source"])).values())
    if "upload" in given:
        _upload([one.dataset.path for one in reports], given["upload"])
    report(
        [one.dataset.path for one in reports],
        each=[one.seconds for one in reports],
        resumed=sum(one.manifest.resumed for one in reports),
        requests=len(requests),
        **agents,
        own_cpu_seconds=time.process_time() - cpu_before,
        own_peak_bytes=peak_memory(os.getpid()),
        size_bytes=sum(one.dataset.size_bytes for one in reports),
    )


if __name__ == "__main__":
    main()
