"""Tests of outages: an endpoint that is down costs no published result, and few calls."""

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest
from typing_extensions import override

from dagster_dataops import DataPipeline, config, read_sequence
from dagster_dataops.data import data_register
from dagster_dataops.errors import OutageError
from tests.execution import helpers
from tests.execution.helpers import MODES, error_rows, lines, node, run_over, write_input
from tests.faults.cases import paired
from tests.nodes import NodeFolder, ResumePolicy, given_stream

pytestmark = pytest.mark.slow

GROUP = "data.outages"
_RUNS = itertools.count()
group: Any = data_register.new_group("outages")


def _ask(record: dict[str, Any], folder: str) -> object:
    """Record the call across processes; fail as long as the endpoint is down."""
    home = Path(folder)
    with (home / "calls").open("a") as file:
        file.write(f"{record['n']}\n")
    if record.get("bad") or ((home / "down").exists() and record["n"] >= _down_from(home)):
        raise ConnectionError("401 the key has expired")
    return {"n": record["n"], "asked": True}


def _down_from(home: Path) -> int:
    return int((home / "down").read_text() or 0)


@data_register(GROUP)
def ask(record, folder=""):
    return _ask(record, folder)


@data_register(GROUP)
async def ask_async(record, folder=""):
    await asyncio.sleep(0)
    return _ask(record, folder)


class Above(group):
    """A selection operator whose sketches call the endpoint."""

    def __init__(self, folder="", **kwargs):
        super().__init__(**kwargs)
        self.folder = folder

    def sketch(self, record):
        return _ask(record, self.folder)["n"]

    def keep(self, sketches):
        return (number >= 0 for number in sketches)


@data_register(GROUP, rewrite_func="forward_batch_input")
def count_all(records):
    return [{"records": len(records)}]


def run(*given: Any, **context: Any) -> Any:
    """Run an operator in a new run."""
    return helpers.run(*given, run=f"run {next(_RUNS)}", **context)


class Endpoint:
    """A service that operators call, and that may be down."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir()
        self.folder = node(home)

    def down(self, first: int = 0) -> None:
        """Make calls fail for records from ``first`` on."""
        (self.home / "down").write_text(str(first))

    def heal(self) -> None:
        (self.home / "down").unlink()

    def calls(self) -> list[int]:
        """Return the records of calls since the last call of this method."""
        path = self.home / "calls"
        found = [int(line) for line in path.read_text().split()] if path.exists() else []
        path.unlink(missing_ok=True)
        return found

    def operator(self, mode: str, **given: Any) -> Any:
        chosen = ask_async if mode == "async" else ask
        settings = {"_concurrency_mode": mode, "_max_workers": 2, **given}
        return chosen(folder=str(self.home), **settings)

    def published(self) -> dict[str, bytes]:
        """Return the files that readers find: result, manifest, error file and kept journal."""
        folder = self.folder
        paths = (folder.result, folder.manifest, folder.errors, folder.kept)
        return {path.name: path.read_bytes() for path in paths if path.exists()}


@pytest.fixture
def endpoint(tmp_path: Path) -> Endpoint:
    return Endpoint(tmp_path / "endpoint")


def numbered(count: int) -> list[dict[str, Any]]:
    return [{"n": n} for n in range(count)]


def answered(count: int) -> bytes:
    return lines({"n": n, "asked": True} for n in range(count))


@pytest.mark.parametrize("mode", MODES)
def test_a_result_is_kept_when_every_record_fails_and_a_recovered_endpoint_is_called_again(
    endpoint: Endpoint, mode: str
) -> None:
    dataset = write_input(endpoint.home / "input.jsonl", numbered(10))
    operator = endpoint.operator(mode)
    run(operator, dataset, endpoint.folder)
    good = endpoint.published()
    endpoint.calls()
    endpoint.down()
    for policy in (ResumePolicy.NEVER, ResumePolicy.AUTO):
        with pytest.raises(OutageError, match=r"all records failed \(10\)") as caught:
            run(operator, dataset, endpoint.folder, resume=policy)
        assert "line 1): ConnectionError: 401 the key has expired" in str(caught.value)
        assert "_stop_after_failures" in str(caught.value)
        assert endpoint.published() == good
        assert sorted(endpoint.calls()) == list(range(10))
        assert list(endpoint.folder.checkpoints.glob("*")) == []
    endpoint.heal()
    run(operator, dataset, endpoint.folder, resume=ResumePolicy.AUTO)
    assert endpoint.folder.result.read_bytes() == answered(10)


@pytest.mark.parametrize(("mode", "given"), paired(MODES, [{}, {"_reuse_outcomes": True}]))
def test_after_an_outage_successes_are_kept_and_failures_are_tried_again(
    endpoint: Endpoint, mode: str, given: dict[str, Any]
) -> None:
    dataset = write_input(endpoint.home / "input.jsonl", numbered(2000))
    operator = endpoint.operator(mode, _stop_after_failures=20, **given)
    endpoint.down(first=900)
    with pytest.raises(OutageError, match="20 calls failed with ConnectionError"):
        run(operator, dataset, endpoint.folder)
    first = endpoint.calls()
    assert len(first) == len(set(first)) < 2000
    assert endpoint.published() == {}
    with pytest.raises(OutageError, match="none succeeded in between"):
        run(operator, dataset, endpoint.folder, resume=ResumePolicy.AUTO)
    second = endpoint.calls()
    endpoint.heal()
    report = run(operator, dataset, endpoint.folder, resume=ResumePolicy.AUTO)
    third = endpoint.calls()
    assert endpoint.folder.result.read_bytes() == answered(2000)
    assert report.manifest.failed == 0
    assert sorted({n for n in first + second if n < 900} | set(third)) == list(range(2000))
    if mode != "process":  # where a worker may lose unsettled records when it is ended
        assert not {n for n in first if n < 900} & set(second + third), "asked twice"
    assert set(range(900, 2000)) <= set(third)


@pytest.mark.parametrize("mode", MODES)
def test_records_that_failed_before_an_outage_are_not_tried_again(
    endpoint: Endpoint, mode: str
) -> None:
    records = [{"n": n, "bad": n % 7 == 3} for n in range(900)]
    dataset = write_input(endpoint.home / "input.jsonl", records)
    operator = endpoint.operator(mode, _stop_after_failures=20)
    endpoint.down(first=400)
    with pytest.raises(OutageError):
        run(operator, dataset, endpoint.folder)
    endpoint.calls()
    endpoint.heal()
    report = run(operator, dataset, endpoint.folder, resume=ResumePolicy.AUTO)
    asked = endpoint.calls()
    assert set(range(400, 900)) <= set(asked)
    if mode != "process":  # where a worker may lose unsettled records when it is ended
        assert len([n for n in asked if n < 400]) <= 4
    assert [row["index"] for row in error_rows(endpoint.folder)] == list(range(3, 900, 7))
    good = lines({"n": n, "asked": True} for n in range(900) if n % 7 != 3)
    assert endpoint.folder.result.read_bytes() == good
    assert report.manifest.failed == len(range(3, 900, 7))


@pytest.mark.parametrize("mode", MODES)
def test_a_row_of_bad_records_at_the_start_of_sorted_input_stops_nothing(
    endpoint: Endpoint, mode: str
) -> None:
    records = [{"n": n, "bad": n < 100} for n in range(300)]
    dataset = write_input(endpoint.home / "input.jsonl", records)
    report = run(endpoint.operator(mode), dataset, endpoint.folder)
    assert (report.manifest.failed, report.manifest.rows_out) == (100, 200)


@pytest.mark.parametrize("mode", MODES)
def test_with_zero_nothing_stops_a_run_and_an_empty_result_is_published(
    endpoint: Endpoint, mode: str
) -> None:
    dataset = write_input(endpoint.home / "input.jsonl", numbered(400))
    endpoint.down()
    operator = endpoint.operator(mode, _stop_after_failures=0)
    report = run(operator, dataset, endpoint.folder)
    assert (report.manifest.failed, report.manifest.rows_out) == (400, 0)
    assert len(error_rows(endpoint.folder)) == 400


@pytest.mark.parametrize("mode", MODES)
def test_the_tries_of_a_record_count_each_and_stop_as_well(endpoint: Endpoint, mode: str) -> None:
    dataset = write_input(endpoint.home / "input.jsonl", numbered(50))
    endpoint.down()
    operator = endpoint.operator(
        mode, _stop_after_failures=30, _retries=1000, _backoff=0, _max_workers=4
    )
    with pytest.raises(OutageError):
        run(operator, dataset, endpoint.folder)
    workers = 4 if mode == "process" else 1
    assert 30 <= len(endpoint.calls()) <= 30 * workers + 4


def test_worker_processes_that_fail_call_after_call_end_the_run_with_few_failures(
    endpoint: Endpoint,
) -> None:
    dataset = write_input(endpoint.home / "input.jsonl", numbered(50_000))
    endpoint.down()
    operator = endpoint.operator("process")
    with pytest.raises(OutageError, match="500 calls failed .* in one worker process"):
        run(operator, dataset, endpoint.folder)
    assert len(endpoint.calls()) <= 1000
    assert endpoint.published() == {}


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_an_empty_input_gives_an_empty_result(endpoint: Endpoint, content: bytes) -> None:
    dataset = write_input(endpoint.home / "input.jsonl", [])
    dataset.path.write_bytes(content)
    run(endpoint.operator("single"), type(dataset).of_file(dataset.path), endpoint.folder)
    assert endpoint.folder.result.read_bytes() == b""


def test_records_that_are_all_dropped_have_not_failed(tmp_path: Path) -> None:
    @data_register(GROUP, _concurrency_mode="single")
    def drop(record):
        return []

    report = run_over(tmp_path, drop(), numbered(5))
    assert (report.manifest.dropped, report.manifest.failed) == (5, 0)


def test_a_single_failing_record_keeps_the_result_of_the_earlier_input(endpoint: Endpoint) -> None:
    operator = endpoint.operator("single")
    run(operator, write_input(endpoint.home / "input.jsonl", numbered(1)), endpoint.folder)
    good = endpoint.published()
    bad = write_input(endpoint.home / "input.jsonl", [{"n": 1, "bad": True}])
    with pytest.raises(OutageError, match=r"all records failed \(1\)"):
        run(operator, bad, endpoint.folder)
    assert endpoint.published() == good


def test_lines_that_are_no_records_are_no_result_either(endpoint: Endpoint) -> None:
    dataset = write_input(endpoint.home / "input.jsonl", numbered(3))
    operators = (endpoint.operator("single"), count_all())
    for operator in operators:
        run(operator, dataset, endpoint.folder)
    good = endpoint.published()
    dataset.path.write_bytes(b'{"n":1\n{"n":2}}\n')
    broken = type(dataset).of_file(dataset.path)
    for operator in operators:
        with pytest.raises(OutageError, match="line 1"):
            run(operator, broken, endpoint.folder)
        assert endpoint.published() == good
        assert list(endpoint.folder.path.glob(".*.draft")) == []


def test_a_retry_in_which_all_fails_again_leaves_the_good_rows_in_the_result(
    endpoint: Endpoint,
) -> None:
    dataset = write_input(endpoint.home / "input.jsonl", numbered(60))
    operator = endpoint.operator("thread", _stop_after_failures=50)
    endpoint.down(first=40)
    run(operator, dataset, endpoint.folder)
    before = endpoint.folder.result.read_bytes()
    report = run(operator, dataset, endpoint.folder, resume=ResumePolicy.FAILED_RECORDS)
    assert (report.manifest.failed, report.manifest.rows_out) == (20, 40)
    assert endpoint.folder.result.read_bytes() == before == answered(40)


def test_a_retry_stopped_by_an_outage_leaves_the_result_and_resumes_later(
    endpoint: Endpoint,
) -> None:
    dataset = write_input(endpoint.home / "input.jsonl", numbered(90))
    endpoint.down(first=40)
    run(endpoint.operator("thread", _stop_after_failures=0), dataset, endpoint.folder)
    good = endpoint.published()
    operator = endpoint.operator("thread", _stop_after_failures=10)
    with pytest.raises(OutageError):
        run(operator, dataset, endpoint.folder, resume=ResumePolicy.FAILED_RECORDS)
    assert endpoint.published() == good
    endpoint.heal()
    endpoint.calls()
    run(operator, dataset, endpoint.folder, resume=ResumePolicy.FAILED_RECORDS)
    assert sorted(endpoint.calls()) == list(range(40, 90))
    assert endpoint.folder.result.read_bytes() == answered(90)


def test_a_selection_whose_sketches_all_fail_publishes_nothing(endpoint: Endpoint) -> None:
    dataset = write_input(endpoint.home / "input.jsonl", numbered(30))
    operator = Above(folder=str(endpoint.home), _concurrency_mode="thread")
    run(operator, dataset, endpoint.folder)
    good = endpoint.published()
    endpoint.down()
    with pytest.raises(OutageError):
        run(operator, dataset, endpoint.folder)
    assert endpoint.published() == good
    endpoint.heal()
    run(operator, dataset, endpoint.folder, resume=ResumePolicy.AUTO)
    assert endpoint.folder.result.read_bytes() == lines(numbered(30))


@pytest.mark.parametrize("on_error", ["skip", "quarantine"])
def test_a_stream_of_which_every_item_fails_publishes_nothing(
    endpoint: Endpoint, on_error: Any
) -> None:
    def stream() -> DataPipeline:
        made = read_sequence(numbered(20)).map(lambda record: _ask(record, str(endpoint.home)))
        return made.and_return(on_error=on_error)

    operator = given_stream("asked", stream)
    run(operator, [], endpoint.folder)
    good = endpoint.published()
    endpoint.down()
    with pytest.raises(OutageError, match="20 items failed, and none succeeded"):
        run(operator, [], endpoint.folder, resume=ResumePolicy.AUTO)
    assert endpoint.published() == good
    endpoint.heal()
    run(operator, [], endpoint.folder, resume=ResumePolicy.AUTO)
    assert endpoint.folder.result.read_bytes() == answered(20)


class _Refusing(BaseHTTPRequestHandler):
    """Answers every request with 401, and counts them."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        with self.server.lock:  # type: ignore[attr-defined]
            self.server.answered += 1  # type: ignore[attr-defined]
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    @override
    def log_message(self, *_: object) -> None: ...


@contextmanager
def refusing() -> Iterator[Any]:
    """Yield a server that refuses every request."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True
        lock = threading.Lock()
        answered = 0

    with Server(("127.0.0.1", 0), _Refusing) as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        try:
            yield server
        finally:
            server.shutdown()
            serving.join()


_CLIENT = """
import asyncio, http.client
from contextlib import closing
from dagster_dataops import data_register
from dagster_dataops.errors import OutageError

@data_register("data.clients", _concurrency_mode="thread", _max_workers=32, _backoff=0.001)
def fetch(record, port=0):
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("GET", f"/{record['n']}")
        return checked(connection.getresponse().status)

@data_register("data.clients", _max_workers=32, _backoff=0.001)
async def fetch_async(record, port=0):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with closing(writer):
        writer.write(b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
        return checked(int((await reader.readline()).split()[1]))

def checked(status):
    if status != 200:
        raise ConnectionError(f"status {status}")
    return {"status": status}

try:
    OPERATOR(port=PORT, _retries=RETRIES)("input.jsonl")
except OutageError as error:
    print(error)
"""


@pytest.mark.parametrize(("operator", "retries"), paired(["fetch", "fetch_async"], [0, 3]))
def test_an_endpoint_that_refuses_everything_gets_few_of_a_hundred_thousand_requests(
    tmp_path: Path, run_python: Callable[..., str], operator: str, retries: int
) -> None:
    write_input(tmp_path / "input.jsonl", numbered(100_000))
    with refusing() as server:
        script = _CLIENT.replace("PORT", str(server.server_address[1]))
        told = run_python(script.replace("OPERATOR", operator).replace("RETRIES", str(retries)))
        asked = server.answered
    assert 150 <= asked < 200
    assert "150 calls failed with ConnectionError, and none succeeded in between" in told
    assert "status 401" in told
    assert "were not tried" in told
    folder = NodeFolder(tmp_path / "data_pipeline_res" / operator, operator)
    assert error_rows(folder) == []
    assert not folder.result.exists()


def test_a_call_in_plain_python_raises_and_resumes_with_resume(endpoint: Endpoint) -> None:
    operator = endpoint.operator("thread")
    endpoint.down()
    with pytest.raises(OutageError):
        operator(numbered(5))
    endpoint.heal()
    with config.temporary(data_process_resume=True):
        assert [record["n"] for record in operator(numbered(5))] == list(range(5))


def test_the_error_names_the_last_of_consecutive_failures(endpoint: Endpoint) -> None:
    dataset = write_input(endpoint.home / "input.jsonl", numbered(300))
    endpoint.down()
    for mode in MODES:
        with pytest.raises(OutageError) as caught:
            run(endpoint.operator(mode, _stop_after_failures=9), dataset, endpoint.folder)
        text = str(caught.value)
        assert "ConnectionError: 401 the key has expired" in text
        assert ", in _ask" in text
        assert str(dataset.path) in text
        assert orjson.dumps(text)
