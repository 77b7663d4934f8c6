"""Test that inputs on an S3 server are read by ranges, by the processes that need them."""

import re
import threading
import tracemalloc
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace

import pytest

from dagster_dataops import JsonlDataset, config, data, trace
from dagster_dataops.assets.inputs.forms import loading_form
from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.configuration import input_object
from dagster_dataops.datasets.lines import Interval, content_interval, iterate_lines
from dagster_dataops.errors import ExportError, InputError, StorageError
from dagster_dataops.execution.cluster.local_cluster import LocalCluster
from dagster_dataops.execution.records import range_loop, span_loop
from dagster_dataops.execution.records.calling import Stretch
from dagster_dataops.execution.records.span_loop import SpanLoop
from dagster_dataops.execution.workers.protocol import Range
from dagster_dataops.execution.workers.scheduler import Scheduler
from dagster_dataops.foundation.places.bucket import BucketFile
from dagster_dataops.foundation.places.object_file import ObjectFile
from dagster_dataops.foundation.places.opening import open_readable, opened
from dagster_dataops.foundation.places.range_source import expect, read_range, state_of
from dagster_dataops.foundation.places.result_store import Status, Version
from tests.execution.helpers import KINDS, MODES, calls_of, node, operator_for, run, second_thread
from tests.nodes import NodeFolder, state_at
from tests.object_stores import SECRETS, FakeStore, machine, s3_server, unreliable, writing

URL = "s3://results/in/docs.jsonl"
LINES = [b'{"n":%d,"do":"replace","text":"%s"}\n' % (n, b"x" * (n % 500)) for n in range(40_000)]


@pytest.fixture(scope="module")
def address():
    with s3_server() as found:
        yield found


@pytest.fixture(autouse=True)
def _no_forks():
    """Start workers without a fork: the threads of earlier tests do not forbid it here."""
    with second_thread(True):
        yield


@pytest.fixture
def bucket(address, monkeypatch, tmp_path):
    """Set the root to a local folder; return the store of the inputs."""
    reach(address, monkeypatch, tmp_path)
    return writing(input_object(URL, {}).bucket)


def reach(address, monkeypatch, tmp_path):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    config.data_process_scratch = tmp_path / "scratch"
    config.data_process_path = tmp_path / "root"


def put(bucket, lines: list[bytes], tmp_path) -> JsonlDataset:
    """Write lines to the bucket and to a file; return the dataset of the file."""
    path = tmp_path / "docs.jsonl"
    path.write_bytes(b"".join(lines))
    bucket.upload("in/docs.jsonl", path)
    return JsonlDataset.of_file(path)


def mixed(count: int) -> list[bytes]:
    return [b'{"n":%d,"do":"%s","text":"t"}\n' % (n, KINDS[n % 8].encode()) for n in range(count)]


def same_files(here: NodeFolder, there: NodeFolder, *, paths: tuple[str, str]) -> None:
    assert there.result.read_bytes() == here.result.read_bytes()
    text = here.errors.read_text().replace(paths[0], paths[1])
    assert there.errors.read_text() == text


@pytest.mark.slow
@pytest.mark.parametrize("mode", [*MODES, "agents"])
def test_every_mode_and_agents_read_an_object_as_a_file(bucket, tmp_path, mode):
    local = put(bucket, mixed(2_000), tmp_path)
    operator = operator_for("process" if mode == "agents" else mode, 2)
    run(operator, local, node(tmp_path / "file"))

    cluster = LocalCluster(agents=2) if mode == "agents" else None
    run(operator, JsonlDataset.of_file(URL), node(tmp_path / "object"), cluster=cluster)

    same_files(node(tmp_path / "file"), node(tmp_path / "object"), paths=(str(local.path), URL))
    assert not list((tmp_path / "scratch").rglob("*"))


def test_a_traced_record_leads_to_the_line_of_the_object(bucket, tmp_path, monkeypatch):
    put(bucket, mixed(40), tmp_path)
    report = run(operator_for("single", 1), JsonlDataset.of_file(URL), node(tmp_path / "object"))
    path = report.dataset.path.parent

    assert '"n":0' in str(trace(path, 1)).replace(" ", "")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["thread", "process"])
def test_an_object_that_is_replaced_during_a_run_is_an_error(bucket, tmp_path, mode, monkeypatch):
    put(bucket, LINES, tmp_path)
    replaced, settle = threading.Event(), Checkpoint.journal

    def replace(checkpoint, entry):
        settle(checkpoint, entry)
        if not replaced.is_set():
            replaced.set()
            bucket.put("in/docs.jsonl", b"".join(reversed(LINES)))

    monkeypatch.setattr(Checkpoint, "journal", replace)
    dataset = JsonlDataset.of_file(URL)
    with pytest.raises(InputError, match=f"{URL}: .*(changed|replaced)"):
        run(operator_for(mode, 2), dataset, node(tmp_path / "object"))

    assert replaced.is_set()
    assert not node(tmp_path / "object").result.exists()


def settle_all(lines, output: bytearray, until: float) -> Stretch:
    """Emit every line as it is."""
    count = 0
    for line in lines:
        output += line
        count += 1
    return Stretch(count, 0, 0)


class Recorded(FakeStore):
    """A store that records which ranges are read."""

    def __init__(self):
        super().__init__()
        self.ranges: list[tuple[int, int]] = []
        self.breaks_after = 1 << 40  # bytes of an answer

    def read_start(self, key, length):
        self.ranges.append((0, length))
        return super().read_start(key, length)

    def read_range(self, key, start, length, version):
        self.ranges.append((start, length))
        return super().read_range(key, start, length, version)

    def read_on(self, key, start, end, version):
        sent = 0
        for piece in super().read_on(key, start, end, version):
            yield piece
            sent += len(piece)
            if sent >= self.breaks_after:
                raise StorageError(key, "read", "the answer broke off")


@pytest.fixture
def recorded(tmp_path):
    """Yield a store, and the path of an object of 10 MB in it."""
    store = Recorded()
    root = machine(tmp_path / "scratch", store)
    store.put("in/docs.jsonl", b"".join(LINES))
    assert root.bucket is not None
    return store, BucketFile(root.bucket, "in/docs.jsonl")


def test_lines_in_order_take_one_request_after_those_of_the_first_lines(recorded):
    store, path = recorded
    interval = content_interval(path)
    store.ranges.clear()

    source = open_readable(path)
    lines = list(iterate_lines(source, [interval]))

    assert [line.text + b"\n" for line in lines] == LINES
    assert len(store.ranges) <= 2
    assert sum(length for _, length in store.ranges) < interval.end + (1 << 20)


def test_a_small_range_of_a_worker_takes_one_request(recorded):
    store, path = recorded
    written: list[bytes] = []
    loop = SpanLoop(
        calls_of(settle_all),
        ObjectFile(path),
        lambda settled: written.append(settled.output),
        checks_input=False,
    )
    ends = [0, *accumulate(map(len, LINES))]
    for first, last in ((0, 1), (100, 300), (5_000, 5_001), (30_000, 32_000)):
        store.ranges.clear()
        written.clear()
        loop.run(ends[first], ends[last])
        assert b"".join(written) == b"".join(LINES[first:last])
        assert len(store.ranges) <= 1


def settled_in_a_second(source) -> tuple[bytes, list[int]]:
    """Settle an input as a range with a second's patience; return output and shortened ends."""
    written: list[bytes] = []
    ends: list[int] = []
    loop = SpanLoop(
        calls_of(settle_all),
        source,
        lambda settled: written.append(settled.output),
        checks_input=False,
        shortened=ends.append,
    )
    loop.run(0, source.size, patience=1.0)
    return b"".join(written), ends


def test_the_latency_of_a_store_uses_up_no_patience(tmp_path, monkeypatch):
    clock = [100.0]

    @contextmanager
    def late():
        clock[0] += 10.0
        yield

    store = FakeStore(late)
    bucket = machine(tmp_path / "scratch", store).bucket
    assert bucket is not None
    path = BucketFile(bucket, "in/docs.jsonl")
    for module in (range_loop, span_loop):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    for lines in (LINES[:10], LINES):
        store.put("in/docs.jsonl", b"".join(lines))
        assert settled_in_a_second(ObjectFile(path)) == (b"".join(lines), [])


def ranges_of(source, size: int) -> list[Range]:
    """Return the ranges of an input whose records are quick."""
    scheduler, ranges = Scheduler(source, [Interval(0, size)], 2), []
    while given := scheduler.take(2):
        ranges.append(given)
        scheduler.measured(given.end - given.start, (given.end - given.start) * 1e-8)
    return ranges


def test_an_object_is_cut_into_fewer_ranges_than_a_file(recorded, tmp_path):
    store, path = recorded
    (tmp_path / "docs.jsonl").write_bytes(b"".join(LINES))
    source = ObjectFile(path)
    store.ranges.clear()

    there = ranges_of(source, source.size)
    with opened(tmp_path / "docs.jsonl") as descriptor:
        here = ranges_of(descriptor, source.size)

    assert 3 * len(there) <= 2 * len(here)
    assert len(store.ranges) <= len(there)


def test_any_ranges_are_those_of_the_object(recorded):
    _, path = recorded
    whole, source = b"".join(LINES), ObjectFile(path)
    edge = 4 << 20
    for first, last in ((0, 0), (0, len(whole)), (1000, 1000 + 2 * edge + 5), (5, 10)):
        expect(source, first, last)
        for start in (0, 4, 999, edge - 1, edge, 1000 + edge - 3, 2 * edge, len(whole) - 2):
            for length in (0, 1, 7, 70_000, edge, 2 * edge, len(whole)):
                found = read_range(source, start, length)
                assert found == whole[start : start + length], (first, last, start, length)


def test_memory_holds_a_few_megabytes(recorded):
    store, path = recorded
    store.put("in/docs.jsonl", bytes(64 << 20))
    source = ObjectFile(path)
    tracemalloc.start()
    try:
        expect(source, 0, source.size)
        for start in range(0, source.size, 1 << 20):
            source.read(start, 1 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < (64 + 16) << 20  # the fake store copies the answer, a real one does not


@pytest.mark.slow
def test_the_rest_of_an_answer_that_breaks_off_is_requested(recorded):
    store, path = recorded
    store.breaks_after = 3 << 20
    source = ObjectFile(path)
    store.ranges.clear()

    lines = list(iterate_lines(source, [content_interval(path)]))

    assert [line.text + b"\n" for line in lines] == LINES
    assert len(store.ranges) > 3


def test_an_object_is_opened_by_one_request(recorded):
    store, path = recorded
    store.ranges.clear()

    source = ObjectFile(path)

    assert (source.size, source.read(0, 1000)) == (len(b"".join(LINES)), b"".join(LINES)[:1000])
    assert len(store.ranges) == 1


def test_an_empty_object_has_no_lines(bucket, tmp_path):
    bucket.put("in/docs.jsonl", b"")

    assert JsonlDataset.of_file(URL).read() == []


def test_a_replaced_object_is_refused_by_an_open_file(recorded):
    store, path = recorded
    source = ObjectFile(path)
    before = state_at(path)
    store.put("in/docs.jsonl", b"".join(reversed(LINES)))

    with pytest.raises(InputError, match="docs.jsonl: was replaced or deleted in the store"):
        source.read(1 << 20, 10)
    with pytest.raises(InputError, match="docs.jsonl: was replaced or deleted in the store"):
        expect(source, 0, source.size)
    assert state_at(path) != before
    assert state_of(ObjectFile(path)) == state_at(path)


def test_a_deleted_object_is_named_by_its_url(bucket, tmp_path):
    put(bucket, mixed(8), tmp_path)
    dataset = JsonlDataset.of_file(URL)
    bucket.remove(["in/docs.jsonl"])

    for read in (dataset.stamp, dataset.read, dataset.download, dataset.check_content):
        with pytest.raises(InputError, match=f"{URL}: .*there is no such object"):
            read()


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["503", "cut"])
def test_temporary_errors_of_the_store_are_retried(bucket, address, monkeypatch, tmp_path, fault):
    local = put(bucket, LINES[:20_000], tmp_path)
    run(operator_for("single", 1), local, node(tmp_path / "file"))
    seen: dict[str, int] = {}

    def fails(method: str, path: str) -> str:
        if method != "GET":
            return ""
        seen[method] = seen.get(method, 0) + 1
        return fault if seen[method] % 3 == 1 else ""

    with unreliable(address, fails) as proxy:
        reach(proxy, monkeypatch, tmp_path)
        run(operator_for("process", 2), JsonlDataset.of_file(URL), node(tmp_path / "object"))

    assert seen["GET"] > 3
    result = node(tmp_path / "object").result.read_bytes()
    assert result == node(tmp_path / "file").result.read_bytes()


def test_an_object_without_tag_and_version_is_refused(recorded, monkeypatch):
    store, path = recorded
    real = store.read_start

    def untagged(number: str):
        def read_start(key, length):
            (size, _), block = real(key, length)
            return Status(size, Version("", number)), block

        return read_start

    monkeypatch.setattr(store, "read_start", untagged(""))
    with pytest.raises(InputError, match="no entity tag and no version"):
        open_readable(path)
    monkeypatch.setattr(store, "read_start", untagged("7"))
    first = open_readable(path)
    monkeypatch.setattr(store, "read_start", untagged("8"))
    second = open_readable(path)
    assert first.fingerprint != second.fingerprint
    assert state_of(first) != state_of(second)


@pytest.mark.parametrize("export", ["Csv", "Jsonl", "Parquet", "HuggingFace"])
def test_an_object_is_exported_like_a_file(bucket, tmp_path, export):
    dataset = put(bucket, LINES[:50], tmp_path)
    ends = {"Csv": ".csv", "Jsonl": "", "Parquet": ".parquet", "HuggingFace": ""}[export]
    more = {"records_per_file": 20} if export == "Jsonl" else {}
    written = []
    for name, source in {"file": dataset, "object": JsonlDataset.of_file(URL)}.items():
        target = Path(getattr(data.export, export)(tmp_path / f"{name}{ends}", **more)(source))
        files = [target] if target.is_file() else sorted(target.glob("**/[!.]*.*"))
        written.append([one.read_bytes() for one in files if one.suffix != ".json"])
    assert written[0] == written[1]


def test_a_value_that_an_export_cannot_hold_is_named_by_the_line_of_the_object(bucket, tmp_path):
    put(bucket, [b'{"n":1}\n', b'{"n":[1]}\n', b'{"n":{"a":1}}\n'], tmp_path)
    with pytest.raises(ExportError, match=re.escape(f"({URL}, line 2)")):
        data.export.Parquet(tmp_path / "out.parquet")(JsonlDataset.of_file(URL))


def test_frames_and_paths_of_an_object_are_those_of_its_copy(bucket, tmp_path):
    pytest.importorskip("polars")
    dataset = put(bucket, LINES[:5], tmp_path)
    remote = JsonlDataset.of_file(URL)
    import polars as pl

    for kind in (pl.DataFrame, pl.LazyFrame):
        frames = [loading_form(kind)([one]).lazy().collect() for one in (dataset, remote)]
        assert frames[0].equals(frames[1])
    assert loading_form(Path)([remote]).read_bytes() == b"".join(LINES[:5])
