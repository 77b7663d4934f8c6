"""Kill agents, workers and heads, and stop the store, where all machines share a bucket alone.

python -m tests.execution.cluster.bucket_campaign --kills 200
python -m tests.execution.cluster.bucket_campaign --kills 200 --steps

With ``--steps`` the operators are those that work in partitions over whole datasets.
"""

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import psutil

from dagster_dataops import JsonlDataset, config, data, load_result
from dagster_dataops.checkpoints.places import sent_segments
from dagster_dataops.configuration import root_setting
from dagster_dataops.errors import ClusterError
from dagster_dataops.execution.runners import dataset_stages, selection_stages
from tests.execution.cluster.fixtures import Apart, input_of, of_another_user, works
from tests.execution.helpers import node, run, write_input
from tests.faults.partitioned import in_partitions
from tests.nodes import NodeFolder, ResumePolicy
from tests.object_stores import SECRETS, reading, s3_server, unreliable

_MIXED: Final = ["keep", "fail", "twice", "drop", "keep", "keep"]
_LONGEST_WAIT: Final = 2.0
_PATIENCE_SECONDS: Final = 20.0  # until there is a victim
_LONGEST_OUTAGE: Final = 3.0
_HANG_SECONDS: Final = 600.0
_AGENTS_DIED: Final = 3  # exit status of a head


class Machines:
    """Agents that are processes of this machine, started by the head, with folders of their own.

    Attributes:
        kinds: What is killed, or stopped; a kind that stands twice is chosen twice as often.
        module: The module that runs as the head of a run.
    """

    kinds: Sequence[str] = ("worker", "worker", "agent", "agent", "head", "store")
    module = __spec__.name

    def agents(self, head: int) -> list[psutil.Process]:
        """Return the agents of a head."""
        children = psutil.Process(head).children()
        return [child for child in children if "agent_process" in " ".join(child.cmdline())]

    def kill(self, head: int, kind: str, chance: random.Random) -> bool:
        """Kill a process of a kind; return ``False`` if there is none."""
        agents = self.agents(head)
        workers = [child for agent in agents for child in agent.children(recursive=True)]
        victims = {"head": [psutil.Process(head)], "agent": agents, "worker": workers}[kind]
        if victims:
            chance.choice(victims).kill()
        return bool(victims)


STEPS: Final[dict[str, Any]] = {
    "exact": partial(data.dedup.Exact, "part"),
    "sort": partial(data.sample.Sort, "part"),
    "group": partial(data.sample.GroupBy, "part"),
    "top": partial(data.sample.TopK, "n", 3, group_key="part"),
}


def operator_of(name: str) -> Any:
    """Return the operator of a round."""
    return STEPS[name](_max_workers=2) if name in STEPS else works(seconds=0.01)


class _Store:
    """Faults of the store: every request fails for some time."""

    def __init__(self) -> None:
        self._until = 0.0
        self._chance = random.Random(0)

    def stop(self, seconds: float) -> None:
        """Answer no request for some seconds."""
        self._until = time.monotonic() + seconds

    def fault(self, method: str, path: str) -> str:
        """Return what a request gets in place of its answer."""
        del method, path
        if time.monotonic() > self._until:
            return ""
        return self._chance.choice(["500", "503", "503", "cut"])


class Campaign:
    """Runs that are killed until their results are complete.

    Args:
        folder: For the machines.
        seed: Of what is killed.
        store: The faults of the store.
        where: The machines of the agents.
        names: Of the operators, see `operator_of`; each round has the next one.
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
        store: _Store,
        where: Machines,
        names: Sequence[str] = ("works",),
    ) -> None:
        self._folder, self._store, self._where = folder, store, where
        self._names = names
        self._chance = random.Random(seed)
        self._machines = 0
        self.told = dict.fromkeys([*where.kinds, "results", "in parts"], 0)

    @property
    def kills(self) -> int:
        """The number of kills and outages."""
        return sum(self.told[kind] for kind in set(self._where.kinds))

    def machine(self, name: str) -> Path:
        """Return the folder of another machine."""
        self._machines += 1
        folder = self._folder / f"{name}{self._machines}"
        of_another_user(folder)
        return folder

    def round(self) -> None:
        """Make a result, and compare it with that of a run at home."""
        number = self.told["results"]
        name = self._names[number % len(self._names)]
        dataset = input_of(self._folder, _MIXED * (100 + 50 * (number % 5)))
        if name in STEPS:
            rows = [
                {"n": n * 7919 % 1009, "part": n * 31 % 257, "pad": "é" * 40} for n in range(2_000)
            ]
            dataset = write_input(self._folder / "input.jsonl", rows)
        expected = self._at_home(dataset, number, name)
        url, source = f"s3://results/campaign{number}", str(dataset.path)
        if number % 2 or name in STEPS:  # else agents do not see the file: the head sends it
            source = f"{url}-input/docs.jsonl"
            _put(source, dataset.path.read_bytes())
        whole = self._chance.choice([0.0, 0.0, math.inf])
        while self._killed(url, source, whole, name):
            pass
        reader = self.machine("reader")
        with config.temporary(data_process_scratch=reader):
            there = NodeFolder.of(root_setting("root", url) / "works")
            content = load_result(there).path.read_bytes()
            errors = there.errors.read_bytes() if there.errors.exists() else b""
            assert there.bucket is not None
            self.told["in parts"] += self._check_objects(there)
        rows = [json.loads(line) for line in errors.splitlines()]
        assert content == expected[0], (number, self.told)
        assert [row["input"] for row in rows] == expected[1], (number, self.told)
        self.told["results"] += 1

    def _at_home(self, dataset: JsonlDataset, number: int, name: str) -> tuple[bytes, list[Any]]:
        home = node(self._folder / f"home{number}")
        run(STEPS[name]() if name in STEPS else works(), dataset, home)
        errors = home.errors.read_bytes() if home.errors.exists() else b""
        rows = [json.loads(line) for line in errors.splitlines()]
        return home.result.read_bytes(), [row["input"] for row in rows]

    def _check_objects(self, there: NodeFolder) -> bool:
        """Check that no part is missing; return whether the result is in parts."""
        assert there.bucket is not None
        store = reading(there.bucket)
        keys = store.names(there.bucket.key_of(there.path))
        lists = [key for key in keys if key.endswith(".parts")]
        for key in lists:
            content = store.read(key)
            assert content is not None
            named = json.loads(content[0])["objects"]
            folder = key.partition("/.versions/")[0]
            assert {f"{folder}/.journal/data/{name}" for name in named} <= set(keys)
        assert len([key for key in keys if key.endswith(("_results.jsonl", ".parts"))]) == 1, keys
        assert not [key for key in keys if "-parts-" in key], keys
        return bool(lists)

    def _killed(self, url: str, source: str, whole: float, name: str) -> bool:
        """Continue a run on another machine, and kill; return whether its head was killed."""
        place = self.machine("head")
        agents = self._folder / f"agents{self._machines}"
        log = (self._folder / "log").open("ab")
        head = subprocess.Popen(
            [sys.executable, "-m", self._where.module, "--head", url, source, str(whole), name],
            cwd=place,
            env={
                **os.environ,
                **{name: str(place) for name in ("HOME", "TMPDIR")},
                "DATAOPS_DATA_PROCESS_SCRATCH": str(place / "scratch"),
                "MACHINES": str(agents),
                "PYTHONPATH": str(Path(__file__).parents[3]),
            },
            stderr=log,
            start_new_session=True,
        )
        until = time.monotonic() + _HANG_SECONDS
        for _ in range(self._chance.randrange(9)):
            time.sleep(self._chance.random() * _LONGEST_WAIT)  # a random moment is what is tested
            kind = self._chance.choice(self._where.kinds)
            patience = time.monotonic() + _PATIENCE_SECONDS
            while head.poll() is None and time.monotonic() < patience:
                if self._fault(head.pid, kind):
                    break
                time.sleep(0.05)
        while head.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        if head.poll() is None:
            os.killpg(head.pid, signal.SIGKILL)
            raise AssertionError(f"the run hangs: {self.told}")
        log.close()
        killed = head.returncode in {-signal.SIGKILL, _AGENTS_DIED}
        assert killed or not head.returncode, (self._folder / "log").read_text()[-3000:]
        return killed

    def _fault(self, head: int, kind: str) -> bool:
        """Kill a process, or stop the store; return ``False`` if there is no such process."""
        if kind == "store":
            self._store.stop(self._chance.random() * _LONGEST_OUTAGE)
            self.told["store"] += 1
            return True
        with suppress(psutil.NoSuchProcess):
            if self._where.kill(head, kind, self._chance):
                self.told[kind] += 1
                return True
        return False


def _put(url: str, data: bytes) -> None:
    with config.temporary(data_process_scratch=Path(tempfile.gettempdir()) / "campaign-input"):
        root = root_setting("root", url.rpartition("/")[0])
        assert root.bucket is not None
        reading(root.bucket).put(url.removeprefix(f"{root.bucket.url}/"), data)


def head(url: str, source: str, whole: float, name: str, cluster: Any) -> None:
    """Run as the head of a run, on a machine of its own."""
    sent_segments.LEAST_PART_BYTES = sent_segments.LEAST_OBJECT_BYTES = 0  # type: ignore[misc]
    root = root_setting("root", url)
    dataset = JsonlDataset.of_file(source)
    if "://" not in source:
        copy = root.path / "input.jsonl"  # in the working copy, which no other machine sees
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(Path(source).read_bytes())
        os.utime(copy, ns=(0, 0))
        dataset = JsonlDataset.of_file(copy)
    how = {"resume": ResumePolicy.AUTO, "flush_seconds": 0, "whole_result_mb": whole}
    there = NodeFolder.of(root / "works")
    try:
        with in_partitions() as patch:
            for module in (selection_stages, dataset_stages):
                patch.setattr(module, "RANGE_BYTES", 4_000)
            run(operator_of(name), dataset, there, cluster=cluster, **how)
    except ClusterError:  # agents were killed faster than they start
        sys.exit(_AGENTS_DIED)


@contextmanager
def store() -> Iterator[_Store]:
    """Run a store with faults; machines that are started in the block reach it."""
    faults = _Store()
    with (
        s3_server() as server,
        unreliable(server, faults.fault) as address,
        patch.dict(os.environ, {**SECRETS, "AWS_ENDPOINT_URL": address}),
    ):
        yield faults


def campaign(rounds: Campaign, kills: int, *, shown: bool = False) -> dict[str, int]:
    """Kill until so many processes have died, over as many results as that takes.

    Returns:
        The number of faults of each kind, and of results.
    """
    while rounds.kills < kills:
        rounds.round()
        if shown:
            sys.stderr.write(f"{rounds.told}\n")
    return rounds.told


def options_of(text: str | None) -> argparse.Namespace:
    """Return the options of a campaign, which are described by a text."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--head", nargs=4)
    parser.add_argument("--steps", action="store_true", help="steps over whole datasets")
    return parser.parse_args()


def main() -> None:
    """Run the campaign and print what was killed, or run as a head."""
    options = options_of(__doc__)
    if options.head:
        url, source, whole, name = options.head
        head(url, source, float(whole), name, Apart(agents=2, cpus_per_agent=1))
        return
    names = list(STEPS) if options.steps else ["works"]
    with tempfile.TemporaryDirectory() as folder, store() as faults:
        Path(folder).chmod(0o711)
        rounds = Campaign(Path(folder), options.seed, faults, Machines(), names)
        sys.stdout.write(f"{campaign(rounds, options.kills, shown=True)}\n")


if __name__ == "__main__":
    main()
