"""Ranks and workers choose samples by their places, and read only their own."""

import json
import os
import subprocess
import sys
from itertools import islice, zip_longest
from pathlib import Path

import pytest

from dagster_dataops.crude import crude, metadataset, read_tar
from dagster_dataops.errors import DataPipelineError, IndexOutdatedError
from dagster_dataops.loading import (
    DataLoader2,
    DistributedReadingService,
    MultiProcessingReadingService,
    SequentialReadingService,
)
from tests.training.filestores.shards import write_tar

COUNTS, SIZE = (13, 11, 16), 40_000
COUNTERS = Path("/proc/self/io")  # with those of processes that have ended


def cook(sample):
    return {"key": sample["__key__"], "keys": sample["__restore_key__"], "size": len(sample["bin"])}


def images(folder, prefix="a"):
    """Write a dataset whose shards have samples of many bytes."""
    first = 0
    for number, count in enumerate(COUNTS):
        members = [
            (f"{prefix}{at:05d}.bin", os.urandom(SIZE)) for at in range(first, first + count)
        ]
        write_tar(folder / f"{number}.tar", members)
        first += count
    return folder


def mixture(folder):
    entries = [
        {"path": str(images(folder / "a")), "repetitions": 1.5, "subflavors": {"n": 1}},
        {"path": str(folder / "a"), "repetitions": 1, "subflavors": {"n": 2}},
        {"path": str(images(folder / "b", "b")), "subset": {"range": ["0%", "50%"]}},
    ]
    splits = {"train": {"blend_epochized": entries}}
    return {"__module__": "megatron.energon", "__class__": "MetadatasetV2", "splits": splits}


def lines(folder):
    path = folder / "lines.jsonl"
    path.write_text("".join(json.dumps({"n": n}) + "\n" for n in range(30)))
    return path


def cook_line(sample):
    return {"key": sample["__key__"], "n": json.loads(sample["json"])["n"]}


STREAMS = {
    "in order": lambda folder: crude(images(folder)),
    "a window": lambda folder: crude(images(folder)).shuffle(7),
    "one window that outlives its source": lambda folder: crude(images(folder)).shuffle(1000),
    "all shuffled, then a window": lambda folder: crude(images(folder)).shuffle(0).shuffle(9),
    "several epochs": lambda folder: crude(images(folder)).take(17).repeat(3).skip(4).shuffle(11),
    "a mixture": lambda folder: metadataset(mixture(folder)).shuffle(20),
    "a shard": lambda folder: crude(images(folder)).shard(1, 3, allow_uneven=True).shuffle(5),
    "no index": lambda folder: read_tar(images(folder)).shuffle(7),
}


def loader(stream, rank=0, ranks=1, workers=0):
    services = [DistributedReadingService(rank, ranks), MultiProcessingReadingService(workers)]
    made = DataLoader2(stream, reading_service=SequentialReadingService(*services))
    made.seed(3)
    return made


def of_all_ranks(stream, ranks, workers=0):
    parts = []
    for rank in range(ranks):
        with loader(stream, rank, ranks, workers) as reading:
            parts.append(list(reading))
    return [item for group in zip_longest(*parts) for item in group if item is not None]


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_ranks_and_workers_have_the_samples_of_one_process(name, tmp_path):
    stream = STREAMS[name](tmp_path).sharding_filter().cook([cook])
    with loader(stream) as alone:
        expected = list(alone)
    assert expected
    assert of_all_ranks(stream, 3) == expected
    assert of_all_ranks(stream, 2, workers=2) == expected


@pytest.mark.parametrize("name", STREAMS)
def test_the_states_of_ranks_are_those_of_one_process(name, tmp_path):
    stream = STREAMS[name](tmp_path).sharding_filter().map(cook)
    with loader(stream) as alone:
        states = [alone.state_dict() for _ in alone]
    for rank in range(2):
        with loader(stream, rank, 2) as reading:
            found = [reading.state_dict() for _ in reading]
        assert [state["stream"]["position"] for state in found[:-1]] == [
            state["stream"]["position"] for state in states[1::2][: len(found) - 1]
        ]


@pytest.mark.parametrize("name", STREAMS)
def test_a_state_of_ranks_is_restored_by_any_number(name, tmp_path):
    stream = STREAMS[name](tmp_path).sharding_filter().map(cook)
    with loader(stream) as alone:
        expected = list(alone)
    for steps in (1, 6):
        with loader(stream, 1, 2) as reading:
            assert len(list(islice(reading, steps))) == steps
            state = reading.state_dict()
        for ranks in (1, 3):
            rest = []
            for rank in range(ranks):
                with loader(stream, rank, ranks) as going_on:
                    going_on.load_state_dict(state)
                    rest.append(list(going_on))
            in_turn = [item for group in zip_longest(*rest) for item in group if item is not None]
            assert in_turn == expected[2 * steps :]


def test_samples_that_are_left_out_are_left_out_on_all_ranks(tmp_path):
    images(tmp_path)
    write_tar(tmp_path / "9.tar", [("a00003.bin", b"again"), ("z.bin", b"last")])
    stream = crude(tmp_path, duplicates="last").shuffle(6).sharding_filter().cook([cook])
    with loader(stream) as alone:
        expected = list(alone)
    assert sum(record["key"] == "a00003" for record in expected) == 1
    assert of_all_ranks(stream, 4) == expected


def test_folders_and_lines_are_read_by_number(tmp_path):
    (tmp_path / "files").mkdir()
    for number in range(20):
        (tmp_path / "files" / f"{number:02d}.bin").write_bytes(bytes(number))
    for stream in (
        crude(tmp_path / "files").shuffle(6).sharding_filter().cook([cook]),
        crude(lines(tmp_path)).shuffle(6).sharding_filter().cook([cook_line]),
    ):
        with loader(stream) as alone:
            expected = list(alone)
        assert of_all_ranks(stream, 3) == expected


def read_bytes():
    return int(COUNTERS.read_text().split()[1])


@pytest.mark.slow
@pytest.mark.skipif(not COUNTERS.exists(), reason="the system does not count the bytes")
@pytest.mark.parametrize("name", [name for name in STREAMS if name != "no index"])
def test_all_ranks_and_workers_together_read_each_sample_once(name, tmp_path):
    stream = STREAMS[name](tmp_path).sharding_filter().cook([cook])
    with loader(stream) as alone:
        size = sum(record["size"] for record in alone)  # the index is made now
    before = read_bytes()
    of_all_ranks(stream, 4, workers=2)
    assert read_bytes() - before < 1.5 * size


def test_only_the_rank_of_a_sample_that_cannot_be_read_fails(tmp_path):
    images(tmp_path)
    stream = crude(tmp_path).sharding_filter().cook([cook])
    list(stream)
    whole = (tmp_path / "2.tar").read_bytes()
    last = sum(COUNTS) - 1
    with (tmp_path / "2.tar").open("r+b") as file:
        file.truncate(len(whole) - 20_000 - SIZE)
    with pytest.raises(IndexOutdatedError, match=r"2\.tar"), loader(stream, last % 3, 3) as reading:
        list(reading)
    with loader(stream, (last + 1) % 3, 3) as reading:
        assert len(list(reading)) == 13


@pytest.mark.slow
@pytest.mark.skipif(not COUNTERS.exists(), reason="the system does not count the bytes")
@pytest.mark.parametrize("name", [name for name in STREAMS if name != "no index"])
def test_failures_that_are_skipped_change_no_order_and_no_reads(name, tmp_path):
    stream = STREAMS[name](tmp_path).sharding_filter().cook([cook]).and_return(on_error="skip")
    with loader(stream) as alone:
        expected = list(alone)
    before = read_bytes()
    assert of_all_ranks(stream, 4, workers=2) == expected
    assert read_bytes() - before < 1.5 * sum(record["size"] for record in expected)


@pytest.mark.slow
def test_samples_of_another_shard_than_the_indexed_one_are_skipped_on_all_ranks(tmp_path):
    stream = crude(images(tmp_path)).shuffle(7).sharding_filter().cook([cook])
    list(stream)
    with (tmp_path / "1.tar").open("r+b") as file:
        file.truncate(5 * (SIZE + 1000))
    indexed_again = crude(tmp_path).shuffle(7).sharding_filter().cook([cook])
    found = []
    for pipeline in (stream.and_return(on_error="skip"), indexed_again.and_return(on_error="skip")):
        with loader(pipeline) as alone:
            expected = list(alone)
        assert of_all_ranks(pipeline, 3) == expected
        assert of_all_ranks(pipeline, 2, workers=2) == expected
        found.append(len(expected))
    assert found == [34, 33]  # before, and with the index of what is left


@pytest.mark.parametrize("window", [1, 0])
def test_a_sample_that_is_lost_while_it_is_read_ends_the_rank(window, tmp_path):
    stream = crude(images(tmp_path)).shuffle(window).sharding_filter().cook([cook])
    pipeline = stream.and_return(on_error="skip", failure_tolerance=None)
    with loader(pipeline, 0, 2) as reading, pytest.raises(DataPipelineError, match="as it was ind"):
        for _ in reading:
            for shard in tmp_path.glob("*.tar"):
                os.truncate(shard, 600)


MANY_SHARDS = """
import resource, sys
from itertools import islice
resource.setrlimit(resource.RLIMIT_NOFILE, (120, 120))
from dagster_dataops.crude import crude
from dagster_dataops.loading import DataLoader2, DistributedReadingService
stream = crude(sys.argv[1]).shuffle(1000).sharding_filter().map(lambda sample: sample["__key__"])
with DataLoader2(stream, reading_service=DistributedReadingService(0, 2)) as loader:
    print(len(set(loader)))
"""


def test_a_window_over_more_shards_than_may_be_open_is_read(tmp_path):
    for number in range(150):
        members = [(f"{number:03d}{at}.bin", b"content") for at in range(4)]
        write_tar(tmp_path / f"{number:03d}.tar", members)
    command = [sys.executable, "-c", MANY_SHARDS, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout == "300\n", ended.stderr
