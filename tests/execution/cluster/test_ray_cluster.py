"""Tests of agents on a Ray cluster with several nodes in this machine."""

import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from dagster_dataops import LocalCluster, RayCluster, data
from dagster_dataops.errors import ClusterError, ConfigurationError, MissingExtraError
from dagster_dataops.execution.agent_pool import Room
from dagster_dataops.execution.cluster import ray_cluster as on_ray
from dagster_dataops.execution.leases import fair_share, node_wait
from tests.execution.cluster.fixtures import (
    NO_NODE_NOTE,
    Meanwhile,
    both,
    family,
    input_of,
    silent_after,
    works,
)
from tests.execution.cluster.ray_nodes import RayNodes, ray_cluster
from tests.execution.helpers import Listener, error_rows, node, run, write_input
from tests.faults.crashing import wait_until
from tests.faults.partitioned import in_partitions, stages_begun

_MIXED = ["keep", "fail", "twice", "drop", "keep", "keep"]


@pytest.fixture(scope="module")
def ray_nodes() -> Iterator[RayNodes]:
    pytest.importorskip("ray", reason="needs pip install 'dagster-dataops[ray]'")
    with ray_cluster() as nodes:
        yield nodes


@pytest.mark.slow
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore")
class TestOnRay:
    def test_result_and_error_file_are_those_of_a_run_at_home(
        self, tmp_path: Path, ray_nodes: RayNodes
    ) -> None:
        kinds = _MIXED * 100
        kinds[77] = "die"
        dataset = input_of(tmp_path, kinds)
        both(tmp_path, dataset, works(), RayCluster(ray_nodes.address, start_seconds=60))
        rows = error_rows(node(tmp_path / "away"))
        assert [row["index"] for row in rows if row["exception"] == "WorkerDied"] == [77]

    def test_an_agent_that_is_killed_is_replaced(self, tmp_path: Path, ray_nodes: RayNodes) -> None:
        dataset = input_of(tmp_path, _MIXED * 200)
        listener = Meanwhile(50, ray_nodes.kill_one)
        cluster = RayCluster(ray_nodes.address, start_seconds=60)
        both(tmp_path, dataset, works(seconds=0.005), cluster, progress=listener)
        assert any("died (ActorDiedError" in note for note in listener.notes)

    def test_a_frozen_node_is_replaced_and_each_record_counts_once(
        self, tmp_path: Path, ray_nodes: RayNodes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        silent_after(monkeypatch, 4.0)
        dataset = input_of(tmp_path, _MIXED * 300)
        frozen: list[psutil.Process] = []

        def freeze() -> None:
            frozen.extend(family(ray_nodes.raylet()))
            for process in frozen:
                process.send_signal(signal.SIGSTOP)

        listener = Meanwhile(50, freeze)
        try:
            cluster = RayCluster(ray_nodes.address, start_seconds=60)
            both(tmp_path, dataset, works(seconds=0.005), cluster, progress=listener)
        finally:
            for process in frozen:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGCONT)
        assert any("has been silent for 4 s" in note for note in listener.notes)

    def test_a_lost_node_costs_no_record(self, tmp_path: Path, ray_nodes: RayNodes) -> None:
        dataset = input_of(tmp_path, _MIXED * 300)
        listener = Meanwhile(50, ray_nodes.lose)
        cluster = RayCluster(ray_nodes.address, start_seconds=60)
        both(tmp_path, dataset, works(seconds=0.005), cluster, progress=listener)
        assert any(" died (" in note for note in listener.notes)

    def test_agents_that_no_node_can_hold_are_an_error_with_the_resources(
        self, tmp_path: Path, ray_nodes: RayNodes
    ) -> None:
        dataset = input_of(tmp_path, ["keep"])
        operator = works(_agents={"num_gpus": 1})
        with pytest.raises(
            ClusterError, match=r"no node can hold .*'num_gpus': 1.* has [0-9]+ CPU"
        ):
            run(operator, dataset, node(tmp_path), cluster=RayCluster(ray_nodes.address))
        waits = RayCluster(ray_nodes.address, agents=1, start_seconds=3.0)
        with pytest.raises(ClusterError, match=r"no agent was ready within 3 s.*num_gpus"):
            run(operator, dataset, node(tmp_path), cluster=waits)

    def test_each_agent_has_a_gpu_of_its_own(self, tmp_path: Path, ray_nodes: RayNodes) -> None:
        ray_nodes.add(num_gpus=2)
        dataset = input_of(tmp_path, ["keep"] * 400)
        operator = data.over_agents.Devices(_agents={"num_gpus": 1, "num_cpus": 0})
        cluster = RayCluster(ray_nodes.address, cpus_per_agent=1)
        rows = run(operator, dataset, node(tmp_path), cluster=cluster).dataset.read()
        ray_nodes.kill(-1)
        assert {(tuple(row["agent"]), row["devices"]) for row in rows} in (
            {((0, 2), "0"), ((1, 2), "1")},
            {((0, 2), "1"), ((1, 2), "0")},
        )

    def test_two_runs_at_once_share_the_nodes_and_wait_for_no_limit(
        self, tmp_path: Path, ray_nodes: RayNodes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(fair_share, "_LOOK_SECONDS", 1.0)
        dataset = input_of(tmp_path, _MIXED * 200)
        cluster = RayCluster(ray_nodes.address, start_seconds=30)
        notes: list[str] = []

        def second() -> None:
            listener = Listener()
            (tmp_path / "second").mkdir()
            both(tmp_path / "second", dataset, works(), cluster, progress=listener)
            notes.extend(listener.notes)

        thread = threading.Thread(target=second)
        listener = Meanwhile(50, thread.start)
        both(tmp_path, dataset, works(seconds=0.05), cluster, progress=listener)
        thread.join()
        assert any("makes room for another run" in note for note in listener.notes)
        assert not any("died" in note for note in [*notes, *listener.notes])

    def test_all_nodes_may_go_and_the_run_continues_when_one_comes(
        self, tmp_path: Path, ray_nodes: RayNodes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(node_wait, "_FIRST_NOTE_SECONDS", 1.0)
        dataset = input_of(tmp_path, _MIXED * 100)
        ray_nodes.add()  # with more nodes, more agents die in a row
        listener = Meanwhile(50, ray_nodes.lose_all)

        def come(text: str) -> None:
            if NO_NODE_NOTE in text and not ray_nodes.nodes:
                ray_nodes.add_two()  # in this thread: Ray sets a signal handler for each node

        listener.on_note = come
        cluster = RayCluster(ray_nodes.address, start_seconds=300)
        both(tmp_path, dataset, works(seconds=0.02), cluster, progress=listener)
        assert ray_nodes.nodes

    def test_more_workers_than_cores_are_those_of_a_node(
        self, tmp_path: Path, ray_nodes: RayNodes
    ) -> None:
        listener = Listener()
        dataset = input_of(tmp_path, _MIXED * 20)
        cluster = RayCluster(ray_nodes.address)
        both(tmp_path, dataset, works(_max_workers=7), cluster, progress=listener)
        text = "_max_workers=7 is more than a node holds: each agent has 2 worker processes"
        assert any(text in note for note in listener.notes)

    def test_agents_stay_between_the_stages_of_a_step(
        self, tmp_path: Path, ray_nodes: RayNodes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started: list[Any] = []
        start = on_ray.RayAgents.start
        monkeypatch.setattr(
            on_ray.RayAgents, "start", lambda *given: started.append(given) or start(*given)
        )
        rows = [{"part": f"{n * 37 % 500:03}"} for n in range(2000)]
        dataset = write_input(tmp_path / "input.jsonl", rows)
        run(data.dedup.Exact("part"), dataset, node(tmp_path / "home"))

        with in_partitions() as patch:
            stages = stages_begun(patch)
            cluster = RayCluster(ray_nodes.address, agents=2, start_seconds=60)
            run(data.dedup.Exact("part"), dataset, node(tmp_path / "away"), cluster=cluster)

        home, away = node(tmp_path / "home"), node(tmp_path / "away")
        assert away.result.read_bytes() == home.result.read_bytes()
        assert len(stages) >= 2
        assert len(started) == 2
        wait_until(lambda: not ray_nodes.agents(), 20, "the agents have ended")

    def test_no_agent_remains_after_a_run(self, tmp_path: Path, ray_nodes: RayNodes) -> None:
        dataset = input_of(tmp_path, ["keep"] * 10)
        run(works(), dataset, node(tmp_path), cluster=RayCluster(ray_nodes.address, agents=1))
        wait_until(lambda: not ray_nodes.agents(), 20, "the agents have ended")


@pytest.mark.slow
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore")
def test_without_a_cluster_there_is_an_error_and_no_run_at_home(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs pip install 'dagster-dataops[ray]'")
    dataset = input_of(tmp_path, ["keep"])
    with pytest.raises(ClusterError, match="does not answer"):
        run(works(), dataset, node(tmp_path), cluster=RayCluster("127.0.0.1:1"))
    assert not node(tmp_path).result.exists()


def test_without_ray_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    dataset = input_of(tmp_path, ["keep"])
    with pytest.raises(MissingExtraError, match=r"RayCluster needs .*dagster-dataops\[ray\]"):
        run(works(), dataset, node(tmp_path), cluster=RayCluster())


@pytest.mark.parametrize(
    "given", [{"agents": 0}, {"agents": "some"}, {"cpus_per_agent": 0}, {"address": ""}]
)
def test_invalid_fields_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(given))):
        RayCluster(**given)


class Resource:
    """Like a resource of dagster-ray, which has an address only when a run has begun."""

    host = ""

    @property
    def ray_address(self) -> str:
        if not self.host:
            raise RuntimeError("the cluster was not started yet")
        return f"ray://{self.host}:10001"


def test_the_address_may_be_a_resource_that_has_one_when_a_run_begins() -> None:
    resource = Resource()
    found = [RayCluster(resource), RayCluster.of(resource)]
    resource.host = "head"
    assert [str(one) for one in found] == ["Ray at ray://head:10001"] * 2
    for given in (LocalCluster(), RayCluster("auto")):
        assert RayCluster.of(given) is given


@pytest.mark.parametrize(
    ("wanted", "count"),
    [({"num_gpus": 1}, 5), ({"num_gpus": 2}, 2), ({"num_gpus": 0.5}, 10), ({"num_cpus": 8}, 2)],
)
def test_there_is_an_agent_for_each_share_of_gpus_and_else_for_each_node(
    monkeypatch: pytest.MonkeyPatch, wanted: dict[str, float], count: int
) -> None:
    nodes: list[dict[str, float]] = [{"CPU": 8, "GPU": 4}, {"CPU": 8, "GPU": 1}, {"CPU": 4}]
    monkeypatch.setattr(on_ray, "_nodes", lambda: nodes)
    assert RayCluster().count(wanted) == count
    assert RayCluster(agents=2).count(wanted) == 2


@pytest.mark.parametrize(
    ("cores", "most", "workers"),
    [
        ([4, 16, 16], None, 4),
        ([4, 16, 16], 2, 2),
        ([4, 16, 16], 8, 8),  # both large nodes
        ([4, 16, 16], 99, 16),
        ([16] * 10 + [64], 32, 16),  # 11 agents instead of one
        ([1], 2, 1),
        ([], None, 1),
        ([], 5, 5),  # no node has come yet
    ],
)
def test_an_agent_has_as_many_workers_as_use_the_most_cores(
    monkeypatch: pytest.MonkeyPatch, cores: list[float], most: int | None, workers: int
) -> None:
    monkeypatch.setattr(on_ray, "_nodes", lambda: [{"CPU": number} for number in cores])
    assert RayCluster().workers(most) == workers


class _Resources:
    """Answers for Ray what a cluster has, and what is free."""

    def __init__(self, free: dict[str, float]) -> None:
        self._free = free

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 12, "GPU": 1, "memory": 100}

    def available_resources(self) -> dict[str, float]:
        return self._free


@pytest.mark.parametrize(
    ("wanted", "free", "room"),
    [
        ({"num_cpus": 8}, {"CPU": 12, "GPU": 1, "memory": 100}, Room.FREE),
        ({"num_cpus": 8}, {"CPU": 11, "GPU": 1, "memory": 100}, Room.BUSY),
        ({"num_cpus": 8}, {"CPU": 12, "memory": 1}, Room.FREE),
        ({"num_gpus": 1}, {"CPU": 12}, Room.BUSY),
        ({"num_cpus": 9}, {}, Room.NONE),
        ({"num_cpus": 8, "num_gpus": 1}, {}, Room.NONE),  # on no single node
        ({"num_cpus": 1, "resources": {"fast": 1}}, {"CPU": 12}, Room.NONE),
    ],
)
def test_a_cluster_is_busy_if_any_is_used_of_what_an_agent_needs(
    monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any], free: dict[str, float], room: Room
) -> None:
    nodes: list[dict[str, float]] = [{"CPU": 8}, {"CPU": 4, "GPU": 1}]
    monkeypatch.setattr(on_ray, "_nodes", lambda: nodes)
    monkeypatch.setattr(on_ray, "_ray", lambda: _Resources(free))
    assert RayCluster().room(wanted) is room
