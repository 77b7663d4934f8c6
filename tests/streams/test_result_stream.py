"""Tests of result_stream: reading a result in a training loop."""

import os
from itertools import islice

import pytest

from dagster_dataops import JsonlDataset, data_register, errors, load_result
from dagster_dataops.testing import assert_resumes_anywhere

LINES = [b'{"n":%d,"text":"%s"}\n' % (n, b"x" * (n % 7 + 1)) for n in range(40)]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "result.jsonl"
    path.write_bytes(b"".join(LINES))
    return path


def epochs(dataset):
    """Two epochs of the second of two ranks, in buckets of like length."""
    shuffled = dataset.stream().shuffle(0, seed=1).shard(1, 2).repeat(2)
    return shuffled.bucket_by_length([(4, 3), (2, 8)], selector="text")


def test_a_dataset_streams_its_records_in_order(path):
    dataset = JsonlDataset.of_file(path)
    assert list(dataset.stream()) == dataset.read()


def test_training_resumes_in_the_middle_of_an_epoch(path):
    dataset = JsonlDataset.of_file(path)
    assert_resumes_anywhere(lambda: epochs(dataset))
    found = [record["n"] for bucket in epochs(dataset) for record in bucket]
    assert len(found) == 40
    assert len(set(found)) < 40  # the other rank has some of them in the second epoch


def state_of(dataset):
    stream = dataset.stream().and_return()
    for _ in islice(iter(stream), 3):
        pass
    return stream.state_dict()


def test_a_change_anywhere_in_the_content_is_refused(path):
    big = b'{"n":0,"text":"%s"}\n' % (b"y" * 200_000)
    path.write_bytes(big * 3)
    state = state_of(JsonlDataset.of_file(path))
    times = path.stat().st_mtime_ns
    with path.open("r+b") as file:
        file.seek(300_000)
        file.write(b"z")
    os.utime(path, ns=(times, times))

    with pytest.raises(errors.StreamStateError, match=r"\(read_jsonl\) differs in its data"):
        JsonlDataset.of_file(path).stream().and_return().load_state_dict(state)


def test_a_copy_elsewhere_is_the_same_content(path, tmp_path):
    state = state_of(JsonlDataset.of_file(path))
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(path.read_bytes())
    stream = JsonlDataset.of_file(copy).stream().and_return()
    stream.load_state_dict(state)

    assert next(iter(stream))["n"] == 3


def test_a_handle_of_changed_content_is_an_error(path):
    dataset = JsonlDataset.of_file(path)
    with path.open("ab") as file:
        file.write(LINES[0])
    with pytest.raises(errors.StreamSourceError, match="create the dataset again"):
        dataset.stream().and_return().state_dict()


def test_a_missing_file_is_named(path):
    dataset = JsonlDataset.of_file(path)
    path.unlink()
    with pytest.raises(errors.StreamSourceError, match=r"result\.jsonl: cannot be read"):
        dataset.stream().and_return().state_dict()


def test_a_published_result_streams_and_its_state_outlives_a_run_with_equal_bytes(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_PATH", str(tmp_path))

    @data_register("data.stored")
    def tenfold(data: dict):
        return {"n": data["n"] * 10}

    operator = tenfold(_concurrency_mode="single")
    operator([{"n": 1}, {"n": 2}])
    (folder,) = {found.parent for found in tmp_path.rglob("*_results.jsonl")}
    dataset = load_result(folder)

    assert dataset == load_result(next(folder.glob("*_results.jsonl")))
    assert dataset.rows == 2
    stream = dataset.stream().and_return()
    assert next(iter(stream)) == {"n": 10}
    state = stream.state_dict()
    tenfold(_concurrency_mode="single")([{"n": 1}, {"n": 2}, {"n": 3}])
    with pytest.raises(errors.StreamStateError, match="differs in its data"):
        load_result(folder).stream().and_return().load_state_dict(state)
    tenfold(_concurrency_mode="single")([{"n": 1}, {"n": 2}])
    again = load_result(folder).stream().and_return()
    again.load_state_dict(state)
    assert list(again) == [{"n": 20}]
