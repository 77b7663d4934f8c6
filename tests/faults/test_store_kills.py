"""Test that runs with results on an object store survive kills, and that requests are bounded.

As a command, it kills as many runs as asked: python -m tests.faults.test_store_kills 100
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import pytest

from dagster_dataops import JsonlDataset, config, load_result
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.execution.executor import OperatorExecutor
from dagster_dataops.execution.run_report import RunContext
from dagster_dataops.places.mounted_buckets import bucket_of
from dagster_dataops.places.open_stores import writing
from tests.faults import store_victim
from tests.faults.warm_starts import StartedProcess, warm_interpreter
from tests.object_stores import SECRETS, FakeStore, machine, s3_server

RECORDS = 1500


@pytest.fixture(scope="module")
def address():
    with s3_server() as found:
        yield found


def make_input(path: Path) -> Path:
    path.write_bytes(b"".join(b'{"n":%d}\n' % number for number in range(RECORDS)))
    return path


def files_of(folder: Path) -> list[bytes]:
    """Return result and error rows."""
    return [(folder / name).read_bytes() for name in ("work_results.jsonl", "work_error.jsonl")]


def expected(folder: Path, source: Path) -> list[bytes]:
    """Return the files of a run on a local disk."""
    operator = store_victim.work(_concurrency_mode="single")
    node = NodeFolder(folder / "work", "work")
    with patch.object(store_victim, "PAUSE", 0):
        executor = OperatorExecutor(RunContext(run="local"))
        executor.run(operator, [JsonlDataset.of_file(source)], node)
    return files_of(node.path)


def start(root: str, scratch: Path, source: Path, mode: str) -> StartedProcess:
    command = [store_victim.__file__, root, str(scratch), str(source), mode]
    with output_of(scratch).open("w") as output:
        return warm_interpreter("dagster_dataops.places.object_store").start(
            command, output.fileno(), folder=Path.cwd(), environment=os.environ
        )


def output_of(scratch: Path) -> Path:
    """Return the file with what the latest run with this scratch folder said."""
    return scratch.with_name(f"{scratch.name}-output.txt")


def kill_until_done(root: str, place: Path, source: Path, seed: int, kills: int) -> tuple[int, str]:
    """Kill runs at random moments, on two machines in turn, and let the last one end.

    Returns:
        How many were killed before they ended, and the output of the last one.
    """
    chance, killed, output = random.Random(seed), 0, ""
    for attempt in range(kills + 1):
        mode = chance.choice(["single", "thread", "process"])
        scratch = place / f"scratch{attempt % 2}"
        with start(root, scratch, source, mode) as process:
            with suppress(subprocess.TimeoutExpired):
                status = process.wait(None if attempt == kills else chance.uniform(0.1, 3))
                output = output_of(scratch).read_text()
                assert status == 0, output
                break
            process.kill()
            killed += 1
    return killed, output


def check_kills(root: str, place: Path, seed: int, kills: int) -> int:
    source = make_input(place / "in.jsonl")
    killed, output = kill_until_done(root, place, source, seed, kills)
    config.data_process_scratch = place / "reader"
    found = load_result(f"{root}/work")
    assert files_of(found.path.parent) == expected(place / "local", source), (seed, output)
    return killed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_killed_runs_on_two_machines_end_with_the_bytes_of_a_local_run(
    address, monkeypatch, tmp_path, seed
):
    for name, value in {**SECRETS, "AWS_ENDPOINT_URL": address}.items():
        monkeypatch.setenv(name, value)

    check_kills(f"s3://results/{tmp_path.name}", tmp_path, seed, 5)


def _entries_with_outputs(names: Iterable[str]) -> set[str]:
    """Return the entries of a journal whose outputs, which are stored first, are there, too."""
    parts = [name.rsplit("/", 2)[1:] for name in names]
    outputs = {name.partition("-")[0] for folder, name in parts if folder == "data"}
    return outputs & {name for folder, name in parts if folder != "data"}


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_a_killed_run_is_resumed_on_another_machine(address, monkeypatch, tmp_path, mode):
    for name, value in {**SECRETS, "AWS_ENDPOINT_URL": address}.items():
        monkeypatch.setenv(name, value)
    source, root = make_input(tmp_path / "in.jsonl"), f"s3://results/{tmp_path.name}"
    config.data_process_scratch = tmp_path / "watch"
    with start(root, tmp_path / "one", source, mode) as process:
        config.data_process_path = root
        bucket, key = bucket_of(config.data_process_path)
        store = writing(bucket)
        while not _entries_with_outputs(store.names(f"{key}/work/.journal")):
            assert process.poll() is None, output_of(tmp_path / "one").read_text()
            time.sleep(0.02)
        process.kill()
    with start(root, tmp_path / "two", source, mode) as process:
        status = process.wait()
    output = output_of(tmp_path / "two").read_text()
    assert status == 0, output
    resumed, attempts = output.split()
    assert int(resumed) > 0
    assert int(attempts) == 2
    found = load_result(f"{root}/work")
    assert files_of(found.path.parent) == expected(tmp_path / "local", source)


def test_requests_are_at_most_four_a_second(tmp_path):
    requests = []

    @contextmanager
    def counted():
        requests.append(time.monotonic())
        yield

    source = make_input(tmp_path / "in.jsonl")
    root = machine(tmp_path / "scratch", FakeStore(counted))
    operator = store_victim.work(_concurrency_mode="single")
    began = time.monotonic()
    context = RunContext(run="run", flush_seconds=0)

    OperatorExecutor(context).run(
        operator, [JsonlDataset.of_file(source)], NodeFolder(root / "work", "work")
    )

    seconds = time.monotonic() - began
    assert seconds > 2
    assert len(requests) <= 20 + 4 * seconds


def main(kills: int) -> None:
    """Kill so many runs; each sequence has up to 5 kills."""
    import tempfile

    total, seed = 0, 1000
    with s3_server() as address, tempfile.TemporaryDirectory() as folder:
        os.environ.update({**SECRETS, "AWS_ENDPOINT_URL": address})
        while total < kills:
            place = Path(folder) / str(seed)
            place.mkdir()
            total += check_kills(f"s3://results/{seed}", place, seed, 5)
            seed += 1
            said = f"{total} killed, {seed - 1000} results, all with the right bytes\n"
            sys.stderr.write(said)


if __name__ == "__main__":
    main(int(sys.argv[1]))
