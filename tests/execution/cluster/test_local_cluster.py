"""Tests of runs over agents that are processes of this machine."""

import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from dagster_dataops import LocalCluster, chain, config, data, load_result
from dagster_dataops.errors import (
    AbsentColumnError,
    ClusterError,
    ConfigurationError,
    OperatorOptionError,
)
from dagster_dataops.execution.leases.head import Head
from dagster_dataops.execution.runners.stages import Stages
from tests.execution.cluster.fixtures import (
    Beside,
    Counting,
    Numbered,
    Watched,
    both,
    input_of,
    works,
)
from tests.execution.helpers import act_async, node, plan, run, turn_around, write_input
from tests.faults.partitioned import in_partitions, stages_begun
from tests.nodes import ResumePolicy, count_tables
from tests.object_stores import FakeStore, machine

_MIXED = ["keep", "fail", "twice", "drop", "keep", "keep"]


@pytest.mark.slow
def test_batches_are_those_of_a_run_at_home(tmp_path: Path) -> None:
    dataset = input_of(tmp_path, ["keep"] * 500)
    both(tmp_path, dataset, Beside(_batch_size=7, _max_workers=2), LocalCluster())


@pytest.mark.slow
def test_a_result_on_an_object_store_is_made_by_agents(tmp_path: Path) -> None:
    store, dataset = FakeStore(), input_of(tmp_path, ["keep", "fail", "twice", "drop"] * 10)
    run(works(), dataset, node(tmp_path / "home"))

    run(works(), dataset, node(machine(tmp_path / "here", store)), cluster=LocalCluster(agents=2))

    home, there = node(tmp_path / "home"), node(machine(tmp_path / "there", store))
    assert load_result(there).path.read_bytes() == home.result.read_bytes()
    assert there.errors.read_bytes() == home.errors.read_bytes()


@pytest.mark.slow
def test_counts_and_reused_outcomes_are_those_of_a_run_at_home(tmp_path: Path) -> None:
    dataset = input_of(tmp_path, ["keep"] * 300)
    home, _ = both(tmp_path, dataset, Counting(_max_workers=2, _reuse_outcomes=True), Watched())
    assert home.manifest.counts["seen"] == 300
    assert node(tmp_path / "away").checkpoints.parent.exists()


@pytest.mark.slow
def test_an_unfinished_run_at_home_is_continued_by_agents(tmp_path: Path) -> None:
    from dagster_dataops.errors import RecordError

    dataset = input_of(tmp_path, ["keep"] * 50 + ["fail"] + ["keep"] * 50)
    with pytest.raises(RecordError):
        run(works(_ignore_errors=False), dataset, node(tmp_path))
    report = run(works(), dataset, node(tmp_path), cluster=LocalCluster(), resume=ResumePolicy.AUTO)
    assert report.manifest.resumed > 0
    assert (report.manifest.rows_out, report.manifest.failed) == (100, 1)


@pytest.mark.slow
def test_each_agent_knows_its_number_and_the_number_of_all(tmp_path: Path) -> None:
    dataset = input_of(tmp_path, ["keep"] * 300)
    operator = Numbered(_max_workers=1)
    report = run(operator, dataset, node(tmp_path), cluster=LocalCluster())
    found = {tuple(record["agent"]) for record in report.dataset.read()}
    assert found <= {(0, 2), (1, 2)}
    assert found
    home = run(operator, dataset, node(tmp_path / "home"))
    assert {tuple(record["agent"]) for record in home.dataset.read()} == {(0, 1)}


def test_other_modes_and_kinds_and_agents_false_stay_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Head, "run", lambda self: pytest.fail("ran on the cluster"))
    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 3))
    for operator in (act_async(), turn_around(), works(_agents=False)):
        assert run(operator, dataset, node(tmp_path), cluster=LocalCluster()).manifest.rows_in == 3


def test_agents_need_a_cluster_and_an_operator_in_process_mode(tmp_path: Path) -> None:
    dataset = input_of(tmp_path, ["keep"])
    with pytest.raises(ClusterError, match=r"works asks for agents .* no cluster"):
        run(works(_agents={"num_gpus": 1}), dataset, node(tmp_path))
    with pytest.raises(OperatorOptionError, match="_agents.*needs _concurrency_mode='process'"):
        works(_agents={"num_gpus": 1}, _concurrency_mode="thread")
    with pytest.raises(OperatorOptionError, match="_agents.*record by record"):
        turn_around(_agents={"num_gpus": 1})
    with pytest.raises(OperatorOptionError, match="must be a dict of resources that an agent"):
        works(_agents=2)


def test_agents_are_no_part_of_the_identity_of_an_operator() -> None:
    plain, spread = works(), works(_agents={"num_gpus": 1})
    assert plain.__dataops__.options_digest == spread.__dataops__.options_digest
    assert hash(spread.__dataops__.settings) != hash(plain.__dataops__.settings)


@pytest.mark.slow
def test_plain_calls_use_the_cluster_of_the_configuration(tmp_path: Path) -> None:
    cluster = Watched(agents=1)
    with config.temporary(cluster=cluster, data_process_path=tmp_path):
        made = works()([{"n": n, "do": "keep"} for n in range(10)])
    assert [record["n"] for record in made] == list(range(10))
    assert len(cluster.pools) == 1
    with pytest.raises(ConfigurationError, match="cluster"):
        config.cluster = "auto"


@pytest.mark.slow
def test_an_operator_whose_code_differs_on_a_node_is_refused(tmp_path: Path, run_python) -> None:
    """The agents import a module whose file was changed after the run had imported it."""
    (tmp_path / "shifting.py").write_text(_module(1))
    code = f"""
    import sys
    sys.path.insert(0, {str(tmp_path)!r})
    import shifting
    from pathlib import Path
    from dagster_dataops import LocalCluster, config, data
    from dagster_dataops.errors import EnvironmentDiffersError
    _ = data.moving.shift().__dataops__.spec.code_version
    Path(shifting.__file__).write_text({_module(2)!r})
    config.cluster = LocalCluster(agents=1)
    try:
        data.moving.shift()([{{"n": 1}}])
    except EnvironmentDiffersError as error:
        print(error.part)
    """
    assert run_python(textwrap.dedent(code)) == "the code version of the operator\n"


def _module(number: int) -> str:
    return (
        "from dagster_dataops import data_register\n\n"
        '@data_register("data.moving")\n'
        "def shift(record):\n"
        f"    return {{'n': record['n'] + {number}}}\n"
    )


@pytest.mark.slow
def test_no_process_and_no_descriptor_remains_after_a_run(tmp_path: Path) -> None:
    dataset = input_of(tmp_path, _MIXED * 5)
    me = psutil.Process()
    run(works(), dataset, node(tmp_path), cluster=LocalCluster())
    children, descriptors = set(me.children(recursive=True)), me.num_fds()
    run(works(), dataset, node(tmp_path), cluster=LocalCluster())
    assert set(me.children(recursive=True)) <= children
    assert me.num_fds() == descriptors
    assert os.getpid() == me.pid
    assert "ray" not in sys.modules


@pytest.mark.parametrize("given", [{"agents": 0}])
def test_invalid_fields_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(given))):
        LocalCluster(**given)


@pytest.mark.slow
def test_records_that_lack_a_column_are_counted_over_all_agents(tmp_path: Path) -> None:
    records = [{"id": n, **({"text": f"t{n}"} if n % 3 else {})} for n in range(300)]
    dataset = write_input(tmp_path / "input.jsonl", records)
    operator = chain(data.shape.AddId("key"), data.text.Normalize(), _max_workers=1)
    report = run(operator, dataset, node(tmp_path), cluster=LocalCluster(agents=2))
    assert count_tables(report.manifest.counts)["missing_columns"] == {"Normalize: text": 100}
    with pytest.raises(AbsentColumnError, match="'txet'"):
        wrong = data.text.Normalize(input_key="txet")
        run(wrong, dataset, node(tmp_path, "wrong"), cluster=LocalCluster(agents=2))


class _Killed(Watched):
    """A cluster whose agents rest between stages, and are killed there."""

    def kill(self, number: int) -> None:
        """Kill some of the running agents."""
        for agent in self.alive()[:number]:
            agent.kill()
            agent.wait()

    def started(self) -> int:
        """Return how many agents were started."""
        return sum(len(pool.processes) for pool in self.pools)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kills"), [("exact", 0), ("exact", 2), ("sort", 1)])
def test_agents_stay_between_the_stages_of_a_step(tmp_path: Path, name: str, kills: int) -> None:
    """Those that are killed while they rest are replaced."""
    make = {"exact": lambda: data.dedup.Exact("part"), "sort": lambda: data.sample.Sort("part")}
    rows = [{"part": f"{n * 37 % 500:03}", "n": n} for n in range(2000)]
    dataset = write_input(tmp_path / "input.jsonl", rows)
    run(make[name](), dataset, node(tmp_path / "home"))
    cluster = _Killed(agents=2, cpus_per_agent=1)

    with in_partitions() as patch:
        stages = before_each_stage(patch, lambda: cluster.kill(kills))
        run(make[name](), dataset, node(tmp_path / "away"), cluster=cluster)

    home, away = node(tmp_path / "home"), node(tmp_path / "away")
    assert away.result.read_bytes() == home.result.read_bytes()
    assert len(stages) >= 2
    runs = len(stages) + (name == "exact")  # the sketches are one more
    assert cluster.started() == 2 + kills * (runs - 1)
    assert not cluster.alive()


def before_each_stage(patch: pytest.MonkeyPatch, act: Callable[[], None]) -> list[str]:
    """Act before each stage that follows a run over agents; return the list of the stages."""
    names = stages_begun(patch)
    run_stage = Stages.run

    def act_and_run(self: Any, name: str, *arguments: Any) -> Any:
        agents = self._attempt.context.cluster
        agents.open()  # waits until they rest
        if names or agents._resting:
            act()
        return run_stage(self, name, *arguments)

    patch.setattr(Stages, "run", act_and_run)
    return names
