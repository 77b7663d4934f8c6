"""Test the object store against an S3 server, and results in it from one machine to another."""

import asyncio
import os
import time
from contextlib import contextmanager
from datetime import timedelta
from itertools import product
from pathlib import Path
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import obstore
import pytest
from obstore.store import LocalStore

from dagster_dataops import (
    JsonlDataset,
    Pipeline,
    config,
    load_result,
    pipeline,
    report,
    trace,
    versions,
)
from dagster_dataops.configuration import root_setting
from dagster_dataops.errors import ConfigurationError, InputError, StorageError, StoreRefusedError
from dagster_dataops.files import File, FileReference
from dagster_dataops.foundation.places.bucket import StoreBucket
from dagster_dataops.foundation.places.objects import object_store
from dagster_dataops.foundation.places.objects.object_store import ObjectStore, open_store
from dagster_dataops.foundation.places.objects.store_answers import refused
from dagster_dataops.foundation.places.result_store import ConflictError
from tests.command_line import main
from tests.each import slow_but
from tests.execution.helpers import second_thread
from tests.object_stores import SECRETS, Answer, keep_at_most, s3_server, unreliable, writing


@pytest.fixture(scope="module")
def address():
    with s3_server() as found:
        yield found


@pytest.fixture
def on_s3(address, monkeypatch, tmp_path):
    """Set the root to a new prefix of the server; return the store."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    config.data_process_scratch = tmp_path / "scratch"
    config.data_process_path = f"s3://results/{tmp_path.name}"
    assert config.results_root().bucket is not None
    return writing(config.results_root().bucket)


def test_an_object_is_created_only_once(on_s3):
    version = on_s3.create("a/one", b"1")

    with pytest.raises(ConflictError):
        on_s3.create("a/one", b"2")
    assert on_s3.read("a/one") == (b"1", version)
    assert on_s3.status("a/one").size == 1


def test_a_request_that_is_sent_twice_is_no_conflict_with_itself(on_s3):
    version = on_s3.create("b/one", b"token 1")

    assert on_s3.create("b/one", b"token 1") == version
    later = on_s3.replace("b/one", b"token 2", version)
    assert on_s3.replace("b/one", b"token 2", version) == later


def test_an_object_of_another_version_is_not_replaced(on_s3):
    first = on_s3.create("c/one", b"1")
    second = on_s3.replace("c/one", b"2", first)

    with pytest.raises(ConflictError):
        on_s3.replace("c/one", b"3", first)
    assert on_s3.read_range("c/one", 0, 1, second) == b"2"
    with pytest.raises(ConflictError):
        on_s3.read_range("c/one", 0, 1, first)


def test_names_and_missing_objects(on_s3, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12")
    on_s3.put("d/x/one", b"1")
    on_s3.upload("d/a%2E b@+=,/two", path)
    on_s3.put("d/three", b"3")

    assert on_s3.names("d") == ["d/a%2E b@+=,/two", "d/three", "d/x/one"]
    assert on_s3.names_in("d") == ["d/three"]
    on_s3.remove(["d/x/one", "d/none"])
    assert on_s3.read("d/x/one") is None
    assert on_s3.status("d/none") is None
    on_s3.check("d/checked")
    assert on_s3.names("d/checked") == []


@pytest.mark.slow
def test_a_large_file_has_parts_and_is_read_by_ranges(on_s3, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1 << 20) * 33)

    on_s3.upload("large", path)

    from dagster_dataops.datasets.fetched_file import fetch

    fetch(on_s3, "large", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == path.read_bytes()


def test_a_store_without_conditional_replacement_is_refused(tmp_path):
    store = ObjectStore("file://here", LocalStore(tmp_path))

    with pytest.raises(StoreRefusedError, match="file://here: .*lacks conditional writes"):
        store.check()


def test_a_missing_bucket_is_refused_with_the_reason(on_s3, tmp_path):
    with pytest.raises(StoreRefusedError, match="s3://nothing-here: .*there is no such bucket"):
        open_store(StoreBucket("s3://nothing-here", tmp_path, {}), written_below="")


def test_wrong_options_are_refused(tmp_path):
    with pytest.raises(StoreRefusedError, match="s3://results: cannot open the store"):
        open_store(StoreBucket("s3://results", tmp_path, {"no_such_option": "x"}))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"timeout": "5"}, 'failed to parse "5" as Duration'),
        ({"aws_allow_http": "true"}, "refuses one of the options aws_allow_http"),
    ],
)
def test_wrong_options_of_connections_are_refused(tmp_path, options, found):
    with pytest.raises(StoreRefusedError, match=found):
        open_store(StoreBucket("s3://bucket", tmp_path, options))


def test_options_of_connections_are_those_of_the_store(on_s3, tmp_path):
    bucket = StoreBucket(on_s3.url, tmp_path, {"timeout": "20 seconds", "allow_http": "true"})
    assert not list(open_store(bucket).names("nothing"))


def test_an_unreachable_object_names_the_url(on_s3):
    broken = ObjectStore(on_s3.url, obstore.store.S3Store("none-such"))
    with pytest.raises(StorageError, match="s3://results/x: cannot list"):
        broken.names("x")


def test_a_folder_of_a_working_copy_is_shown_by_its_url(on_s3, tmp_path):
    root = config.results_root()

    assert str(root / "node") == f"s3://results/{tmp_path.name}/node"
    assert str(root.located(root.path / "x")) == f"s3://results/{tmp_path.name}/x"
    assert str(root.at(tmp_path)) == str(tmp_path)
    assert root.at(tmp_path).bucket is None


def test_a_url_with_dots_is_refused():
    with pytest.raises(ConfigurationError, match=r"without the parts \. and \.\."):
        root_setting("root", "s3://results/../other")


def elsewhere(tmp_path: Path) -> None:
    """Go on as on another machine."""
    config.data_process_scratch = tmp_path / "elsewhere"


RECORDS = [{"n": number, "text": "x" * 50} for number in range(500)]


@pytest.mark.parametrize("mode", ["single", "thread", "async", "process"])
def test_a_result_is_the_same_on_another_machine(on_s3, registry, tmp_path, mode):
    function = doubled_later if mode == "async" else double
    operator = registry("data.group", _concurrency_mode=mode)(function)()

    result = operator(RECORDS)

    elsewhere(tmp_path)
    found = load_result(f"s3://results/{tmp_path.name}/{function.__name__}")
    assert found.read() == result == [double(record) for record in RECORDS if record["n"] % 9]
    assert found.path.with_name(f"{function.__name__}_error.jsonl").read_bytes().count(b"\n") == 56


def double(data: dict) -> dict:
    if data["n"] % 9 == 0:
        raise ValueError("nine")
    return {**data, "twice": 2 * data["n"]}


async def doubled_later(data: dict) -> dict:
    await asyncio.sleep(0)
    return double(data)


def test_failed_records_are_retried_on_another_machine(on_s3, registry, tmp_path):
    allowed = [False]

    @registry("data.group", _concurrency_mode="single")
    def some(data: dict) -> dict:
        if data["n"] % 9 == 0 and not allowed[0]:
            raise ValueError("nine")
        return data

    operator = some()
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"".join(b'{"n":%d}\n' % number for number in range(100)))
    assert len(operator(str(source))) == 88

    elsewhere(tmp_path)
    allowed[0] = True
    config.data_process_resume = "failed_records"
    assert operator(str(source)) == [{"n": number} for number in range(100)]


def test_a_finished_result_is_reused_on_another_machine(on_s3, registry, tmp_path):
    calls = []

    @registry("data.group", _concurrency_mode="single")
    def count(data: dict) -> dict:
        calls.append(data["n"])
        return data

    operator = count()
    source = tmp_path / "in.jsonl"
    source.write_bytes(b'{"n":1}\n')
    operator(str(source))

    elsewhere(tmp_path)
    config.data_process_resume = True
    assert operator(str(source)) == [{"n": 1}]
    assert calls == [1]


def test_equal_bytes_are_not_sent_again(on_s3, registry, tmp_path):
    operator = registry("data.group", _concurrency_mode="single")(double)()
    operator(RECORDS)
    before = [name for name in on_s3.names(tmp_path.name) if name.endswith("results.jsonl")]

    operator(RECORDS)

    assert [n for n in on_s3.names(tmp_path.name) if n.endswith("results.jsonl")] == before
    assert not [name for name in on_s3.names(tmp_path.name) if "/data/" in name]


def test_an_input_is_read_where_it_lies_in_its_present_version(on_s3, registry, tmp_path):
    on_s3.put("in/docs.jsonl", b'{"n":1}\n{"n":0}\n')
    operator = registry("data.group", _concurrency_mode="single")(double)()

    assert operator("s3://results/in/docs.jsonl") == [{"n": 1, "twice": 2}]

    row = next((config.data_process_path / "double").glob("*_error.jsonl")).read_text()
    assert '"path":"s3://results/in/docs.jsonl","line":2' in row
    assert not list(config.data_process_scratch.rglob("docs.jsonl"))
    first = JsonlDataset.of_file("s3://results/in/docs.jsonl")
    on_s3.put("in/docs.jsonl", b'{"n":2}\n')
    second = JsonlDataset.of_file("s3://results/in/docs.jsonl")
    assert second.read() == [{"n": 2}]
    assert second.identity != first.fingerprint
    with pytest.raises(InputError, match="s3://results/in/docs.jsonl: was changed after its hand"):
        first.check_content()
    with pytest.raises(InputError, match="s3://results/in/docs.jsonl: was changed after its hand"):
        first.download()


def test_a_copy_of_an_input_is_made_once_for_each_version(on_s3):
    on_s3.put("in/docs.jsonl", b'{"n":1}\n')
    dataset = JsonlDataset.of_file("s3://results/in/docs.jsonl")
    copy = dataset.download().path
    before = copy.stat()

    assert dataset.download().path.stat().st_ino == before.st_ino
    assert list(dataset.stream()) == [{"n": 1}]
    copy.write_bytes(b'{"n":2}\n')
    os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert dataset.download().read() == [{"n": 1}]


def test_a_missing_input_is_an_error_with_its_url(on_s3):
    with pytest.raises(InputError, match="s3://results/none.jsonl: there is no such object"):
        JsonlDataset.of_file("s3://results/none.jsonl")


def test_without_the_extra_the_error_names_it(run_python):
    out = run_python(
        "import sys\n"
        "sys.modules['obstore'] = None\n"
        "from dagster_dataops import load_result\n"
        "try:\n"
        "    load_result('s3://results/x')\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    assert "MissingExtraError a root on an object store needs" in out
    assert "dagster-dataops[objectstore]" in out


def test_runs_on_a_local_disk_import_nothing_of_object_stores(run_python, tmp_path):
    out = run_python(
        "import sys\n"
        "from dagster_dataops import config, data, load_result\n"
        f"config.data_process_path = {str(tmp_path)!r}\n"
        "data.dedup.Exact(input_key='n')([{'n': 1}, {'n': 1}])\n"
        "print([name for name in sys.modules if 'obstore' in name or 'published_objects' in name\n"
        "       or name.endswith(('_store', '_stores', 'bucket_claim', 'bucket_place'))])\n"
    )
    assert out == "[]\n"


@pytest.mark.slow
def test_a_run_outlasts_an_outage_of_its_store(address, monkeypatch, registry, tmp_path):
    fault_at: list[str] = []

    def fails(method: str, path: str) -> str:
        hit = method == "PUT" and "/.journal/" in path and len(fault_at) < 15
        fault_at.extend([path] * hit)
        return "503" if hit else ""

    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    config.data_process_scratch = tmp_path / "scratch"
    with unreliable(address, fails) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy)
        config.data_process_path = f"s3://results/{tmp_path.name}"
        operator = registry("data.group", _concurrency_mode="single")(double)()
        assert len(operator(RECORDS)) == 444

    assert len(fault_at) == 15


def test_an_address_without_a_store_is_refused_soon(monkeypatch, tmp_path):
    for name, value in {**SECRETS, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}.items():
        monkeypatch.setenv(name, value)

    with (
        patch.object(object_store, "_PATIENCE", {"retry_timeout": timedelta(days=1)}),
        pytest.raises(StoreRefusedError, match="s3://results: cannot write to the store"),
    ):
        open_store(StoreBucket("s3://results", tmp_path, {}), written_below="")
    with pytest.raises(StorageError, match="cannot list: .*nothing answers there; check the addre"):
        open_store(StoreBucket("s3://results", tmp_path, {})).names("any")


@pytest.fixture
def through(address, monkeypatch, tmp_path):
    """Return a block in which requests to the root ``root`` pass ``fails``."""

    @contextmanager
    def begun(fails):
        with unreliable(address, fails) as proxy, monkeypatch.context() as patched:
            for name, value in {**SECRETS, "AWS_ENDPOINT_URL": proxy}.items():
                patched.setenv(name, value)
            with config.temporary(
                data_process_scratch=tmp_path / "scratch",
                data_process_path=f"s3://results/{tmp_path.name}/root",
            ):
                yield

    return begun


@pytest.fixture
def others(through, tmp_path):
    """Return a list of the requests for keys that are not below the root; they are refused."""
    below, found = f"{tmp_path.name}/root/", []

    def fails(method: str, path: str) -> str:
        parts = urlsplit(path)
        keys = [parts.path.removeprefix("/results").removeprefix("/")]
        keys += parse_qs(parts.query).get("prefix", [])
        if not any(key.startswith(below) for key in keys):
            found.append((method, path))
            return "403"
        return ""

    with through(fails):
        yield found


def test_all_requests_of_a_run_are_below_the_prefix_of_the_root(others, registry):
    assert len(registry("data.group", _concurrency_mode="single")(double)()(RECORDS)) == 444
    assert len(load_result(config.results_root() / "double").read()) == 444
    assert others == []


def with_file(record):
    return {"file": File(f"text {record['n'] % 7}".encode())}


@pytest.mark.parametrize("mode", slow_but("thread", ["process", "thread"]))
def test_files_that_operators_make_need_no_other_rights_either(others, registry, mode):
    operator = registry("data.group", _concurrency_mode=mode, _max_workers=2)(with_file)()
    names = {record["file"]["file"] for record in operator(RECORDS)}
    files = {FileReference.of(name).read() for name in names}
    assert files == {f"text {n}".encode() for n in range(7)}
    assert others == []


DATE = "Fri, 01 Nov 2024 00:00:00 GMT"
REQUESTS = {
    "write": lambda method, path: method == "PUT",
    "read": lambda method, path: method == "GET" and "list-type" not in path,
    "list": lambda method, path: "list-type" in path,
    "delete": lambda method, path: method == "DELETE",
}


def error_answer(status: int, code: str, text: str = "", **headers: str) -> Answer:
    body = f"<Error><Code>{code}</Code><Message>refused</Message>{text}</Error>"
    return Answer(status, body.encode(), headers)


def refusal(through, fails) -> str:
    """Return the message with which a store is refused whose requests pass ``fails``."""
    with through(fails), pytest.raises(StoreRefusedError) as refused:
        open_store(config.results_root().bucket, written_below="root")
    return str(refused.value)


@pytest.mark.parametrize(
    ("action", "status"),
    [
        *((action, "403") for action in REQUESTS),
        *product(["list", "delete"], ["400", "404", "405"]),  # those from 500 on are tried again
    ],
)
def test_a_store_that_refuses_a_right_is_refused_with_its_name(
    through, registry, on_s3, tmp_path, action, status
):
    operator = registry("data.group", _concurrency_mode="single")(double)()
    reason = f"cannot {action} objects below it: .*a store that|keeps an object that was deleted"
    if status == "403":
        reason = f"cannot {action} objects below it: .*rights to read, write, list and delete"
    with (
        through(lambda *request: status if REQUESTS[action](*request) else ""),
        pytest.raises(StoreRefusedError, match=reason) as refused,
    ):
        operator(RECORDS)
    left = on_s3.names(tmp_path.name)
    assert len(left) == (action == "delete")
    assert all(key in str(refused.value) for key in left)


@pytest.mark.parametrize("action", slow_but("write", REQUESTS))
def test_a_store_that_does_not_support_a_request_is_refused_soon(through, action):
    for status, code in [
        (501, "NotImplemented"),
        (405, "MethodNotAllowed"),
        (400, "NotImplemented"),
    ]:
        answer = error_answer(status, code)
        begun = time.monotonic()
        message = refusal(
            through, lambda *request, answer=answer: answer if REQUESTS[action](*request) else ""
        )
        assert f"cannot {action} objects below it: it does not support the request" in message
        assert f"({status} " in message
        assert time.monotonic() - begun < 60


def test_results_are_read_without_the_right_to_write(through, registry, tmp_path, capsys):
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"".join(b'{"n":%d}\n' % number for number in range(20)))

    def made() -> Pipeline:
        with pipeline("docs") as ppl:
            ppl.double = registry("data.group", _concurrency_mode="single")(double)()
        return ppl

    with through(lambda *request: ""):
        made().materialize(str(source))
    refused = []

    def fails(method: str, path: str) -> str:
        refused.extend([(method, path)] * (method not in {"GET", "HEAD"}))
        return "403" if method not in {"GET", "HEAD"} else ""

    with through(fails), config.temporary(data_process_scratch=tmp_path / "reader"):
        url = f"s3://results/{tmp_path.name}/root/docs"
        assert load_result(f"{url}/double").rows == 17
        assert [version.name for version in versions(f"{url}/double")] == ["current"]
        assert "line 2" in str(trace(f"{url}/double", 1))
        assert report(url, tmp_path / "report.html").exists()
        for command in (
            ["versions", f"{url}/double"],
            ["trace", f"{url}/double", "--line", "1"],
            ["trace", "docs/double", "--line", "1", "--root", url.removesuffix("/docs")],
            ["prune-files", url, "--days", "0"],
        ):
            assert main(command) == 0, capsys.readouterr().err
    assert refused == []


ANSWERS = {
    "write": lambda store: store.put("root/any", b"1"),
    "read": lambda store: store.read("root/any"),
    "list": lambda store: store.names("root"),
    "delete": lambda store: store.remove(["root/any"]),
}


@pytest.mark.parametrize(
    ("status", "code", "remedy"),
    [
        (403, "AccessDenied", ""),
        (403, "InvalidAccessKeyId", "the credentials are wrong"),
        (403, "SignatureDoesNotMatch", "the credentials are wrong"),
        (401, "Unauthorized", "the credentials are wrong"),
        (400, "ExpiredToken", "the credentials have expired; renew them"),
        (403, "RequestTimeTooSkewed", "correct the clock"),
        (404, "NoSuchBucket", "there is no such bucket; create it first"),
    ],
)
def test_an_error_says_what_the_store_answered_and_what_to_do(through, status, code, remedy):
    rights = {"write": "Put", "read": "Get", "list": "ListBucket", "delete": "Delete"}
    body = f'<?xml version="1.0"?>\n{error_answer(status, code).body.decode()}'  # as S3 does
    with through(lambda *request: Answer(status, body.encode())):
        store = open_store(config.results_root().bucket)
        for action, request in ANSWERS.items():
            with pytest.raises(StorageError) as found:
                request(store)
            assert "s3://results/root" in str(found.value)
            assert f"cannot {action}: the store answered {status} " in str(found.value)
            assert f", {code}, refused; " in str(found.value)
            assert (remedy or f"`s3:{rights[action]}") in str(found.value)
        message = refusal(through, lambda *request: Answer(status, body.encode()))
        assert (remedy or "results need the rights to read, write") in message


def test_a_store_without_uploads_in_parts_is_named(through):
    answer = error_answer(405, "MethodNotAllowed")
    with through(lambda method, path: answer if "uploads" in path or "uploadId" in path else ""):
        upload = open_store(config.results_root().bucket).begin_upload("root/large", PART)
        with pytest.raises(StorageError, match=r"answered 405 .*a store that takes uploads in pa"):
            for _ in range(12):
                upload.write(b"x" * PART)
            upload.finish()
        upload.abort()


PARTED = error_answer(404, "NoSuchUpload"), error_answer(400, "InvalidArgument")


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        *(
            (lambda method, path, answer=answer: answer if "uploads" in path else "", text)
            for answer, text in [
                (error_answer(501, "NotImplemented"), "it does not support the request (501 "),
                (error_answer(405, "MethodNotAllowed"), "it does not support the request (405 "),
                (error_answer(403, "AccessDenied"), "results need the rights to read, write"),
                *((answer, "takes uploads in parts (multipart)") for answer in PARTED),
            ]
        ),
        (
            lambda method, path: PARTED[0] if method == "PUT" and "uploadId" in path else "",
            "takes uploads in parts (multipart)",
        ),
    ],
)
def test_a_store_without_uploads_in_parts_is_refused_before_a_run(through, on_s3, fails, message):
    before = on_s3.names("root")
    text = refusal(through, fails)
    assert "cannot upload objects below it: " in text
    assert message in text
    assert on_s3.names("root") == before


def test_a_client_without_uploads_in_parts_is_not_said_to_lack_conditional_writes():
    failed = StorageError("s3://results/root/one", "upload", "NotImplementedError: no uploads")
    failed.__cause__ = NotImplementedError()
    text = str(refused("s3://results/root", failed))
    assert "takes uploads in parts (multipart)" in text
    assert "it lacks conditional writes" not in text


def test_a_store_that_loses_an_upload_in_parts_is_refused(through):
    puts = []

    def fails(method: str, path: str) -> str | Answer:
        puts.extend([path] * ("uploadId" in path))
        return OLD if puts and method == "GET" else ""

    assert "does not return the object that was uploaded in parts last" in refusal(through, fails)


OLD = Answer(200, b"old", {"ETag": '"1"', "Last-Modified": DATE})
LIST = (
    b"<ListBucketResult><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>"
)


@pytest.mark.parametrize(
    ("action", "answer", "lacks"),
    [
        ("write", "unconditional", "overwrites an object that is to be created"),
        ("write", Answer(412), "refuses to create an object that does not exist"),
        ("write", Answer(409), "refuses to create an object that does not exist"),
        ("write", Answer(200, b"", {"ETag": '"1"'}), "overwrites an object"),
        ("read", error_answer(404, "NoSuchKey"), "does not return the object"),
        ("read", OLD, "does not return"),
        ("list", Answer(200, LIST), "its list lacks an object that was written"),
        ("list", Answer(200, b"<html>login</html>"), "its list lacks an object that was written"),
        ("delete", Answer(200), "keeps an object that was deleted"),
        ("delete", Answer(204), "keeps an object that was deleted"),
        ("delete", error_answer(404, "NoSuchKey"), "keeps an object that was deleted"),
    ],
)
def test_a_store_that_accepts_a_request_and_does_not_carry_it_out_is_refused(
    through, action, answer, lacks
):
    message = refusal(through, lambda *request: answer if REQUESTS[action](*request) else "")
    assert lacks in message


@pytest.mark.parametrize(
    ("first", "answer", "lacks"),
    [
        (3, "unconditional", "replaces an object of another version (If-Match)"),
        (3, Answer(412), "refuses to replace an object of the same version (If-Match)"),
        (3, error_answer(501, "NotImplemented"), "does not support the request"),
    ],
)
def test_a_store_that_has_only_one_of_the_two_conditions_is_refused(through, first, answer, lacks):
    writes = []

    def fails(method: str, path: str) -> str | Answer:
        writes.extend([path] * (method == "PUT"))
        return answer if method == "PUT" and len(writes) >= first else ""

    assert lacks in refusal(through, fails)


def test_a_range_of_another_version_is_refused_if_the_store_ignores_the_condition(through):
    with through(lambda method, path: "unconditional" if method == "GET" else ""):
        store = open_store(config.results_root().bucket, written_below="root")
        old = store.create("ignored/one", b"12")
        new = store.replace("ignored/one", b"345", old)
        assert store.read_range("ignored/one", 1, 2, new) == b"45"
        for read in (store.read_range, lambda *place: list(store.read_on(*place))):
            with pytest.raises(ConflictError):
                read("ignored/one", 0, 2, old)


REGION = {"x-amz-bucket-region": "eu-central-1"}


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (Answer(301, b"", REGION), "in another region"),
        (error_answer(301, "PermanentRedirect", **REGION), "in another region"),
        (
            error_answer(301, "PermanentRedirect", Location="https://127.0.0.1:9/"),
            "sends requests elsewhere",
        ),
        (
            error_answer(307, "TemporaryRedirect", Location="https://127.0.0.1:9/"),
            "sends requests elsewhere",
        ),
        (
            error_answer(
                400, "AuthorizationHeaderMalformed", "<Region>eu-central-1</Region>", **REGION
            ),
            "in the region eu-central-1",
        ),
        (error_answer(400, "IllegalLocationConstraintException", **REGION), "in another region"),
        (Answer(400, b"", REGION), "if the bucket is in another region"),
    ],
)
def test_a_bucket_in_another_region_is_refused_with_what_to_set(through, answer, names):
    message = refusal(through, lambda method, path: answer)
    assert names in message
    assert "set `region` in storage_options" in message


@pytest.mark.parametrize("status", [301, 400])
def test_an_input_in_another_region_is_an_error_with_what_to_set(through, status):
    answer = Answer(status, b"", REGION)  # HEAD has no text
    with through(lambda method, path: answer):
        store = open_store(config.results_root().bucket)
        for ask in (store.status, store.read):
            with pytest.raises(StorageError, match="set `region`"):
                ask("any")


def test_listings_and_deletions_whose_answer_breaks_off_are_repeated(through, tmp_path):
    cut = []

    def fails(method: str, path: str) -> str:
        asked = "list-type" in path or method == "DELETE"
        cut.extend([path] * asked)
        return ("drop" if method == "DELETE" else "cut") if asked and len(cut) % 2 else ""

    with through(fails), patch.object(object_store, "_PAUSE_SECONDS", 0):
        store = open_store(config.results_root().bucket)
        store.put("broken/one", b"1")
        assert store.names("broken") == store.names_in("broken") == ["broken/one"]
        store.remove(["broken/one"])
        assert store.names("broken") == []
    assert len(cut) == 8


def test_objects_are_deleted_though_the_store_says_of_some_that_they_are_missing(through):
    def fails(method: str, path: str) -> str | Answer:
        missing = method == "DELETE" and "missing" in path
        return error_answer(404, "NoSuchKey") if missing else ""

    keys = [f"told/{number:02}" for number in range(40)]
    with through(fails):
        store = open_store(config.results_root().bucket)
        for key in keys:
            store.put(key, b"1")
        store.remove(["told/missing", *keys, "told/missing-too"])
        assert store.names("told") == []


@pytest.mark.parametrize(
    ("length", "times"), [(3, 1), pytest.param(3, 12, marks=pytest.mark.slow), (5 << 20, 1)]
)
def test_reads_whose_answer_breaks_off_are_repeated(through, length, times):
    cut = []

    def fails(method: str, path: str) -> str:
        asked = method == "GET" and "whole" in path
        cut.extend([path] * asked)
        return "cut" if asked and len(cut) <= times else ""

    content = os.urandom(length)
    with through(fails), patch.object(object_store, "_PAUSE_SECONDS", 0):
        bucket = config.results_root().bucket
        open_store(bucket).put("cut/whole", content)
        first = {
            "read": lambda store: store.read("cut/whole")[0],
            "read_start": lambda store: store.read_start("cut/whole", length)[1],
            "beyond its end": lambda store: store.read_start("cut/whole", length + 100)[1],
            "read_range": lambda store: store.read_range("cut/whole", 0, length, None),
        }
        for name, read in first.items():  # a new client waits for less
            cut.clear()
            assert read(open_store(bucket)) == content, name
        if times > 1:
            return  # it waits longer then
        store = open_store(bucket)
        version = store.status("cut/whole").version
        later = {
            "read_range": lambda: store.read_range("cut/whole", 0, length, version),
            "read_on": lambda: b"".join(store.read_on("cut/whole", 0, length, version)),
        }
        for name, read in later.items():
            cut.clear()
            assert read() == content, name


@pytest.mark.parametrize("fault", ["cut", "drop"])
def test_writes_whose_answer_breaks_off_are_repeated(through, tmp_path, fault):
    puts = []

    def fails(method: str, path: str) -> str:
        puts.extend([path] * (method == "PUT"))
        return fault if method == "PUT" and len(puts) % 2 else ""

    (tmp_path / "file").write_bytes(b"4")
    with through(fails), patch.object(object_store, "_PAUSE_SECONDS", 0):
        store = open_store(config.results_root().bucket, written_below=fault)
        first = store.create(f"{fault}/one", b"1")
        for _ in range(2):
            with pytest.raises(ConflictError):
                store.create(f"{fault}/one", b"2")
        second = store.replace(f"{fault}/one", b"3", first)
        for _ in range(2):
            with pytest.raises(ConflictError):
                store.replace(f"{fault}/one", b"4", first)
        store.upload(f"{fault}/two", tmp_path / "file")
        assert store.read(f"{fault}/one") == (b"3", second)
        assert store.read(f"{fault}/two")[0] == b"4"


PART = 5 << 20


def uploads_in(address: str) -> int:
    """Return how many uploads of the bucket were begun, and neither finished nor aborted."""
    with urlopen(f"{address}/results?uploads") as answer:  # noqa: S310 - of the test
        return answer.read().count(b"<Upload>")


def test_an_upload_has_parts_and_there_is_no_object_before_its_end(on_s3, address):
    content = os.urandom(12 << 20)
    upload = on_s3.begin_upload("parts/whole", PART)
    for start in range(0, len(content), 1 << 20):
        upload.write(content[start : start + (1 << 20)])
    assert on_s3.status("parts/whole") is None

    upload.finish()

    assert on_s3.read("parts/whole")[0] == content
    assert uploads_in(address) == 0
    for data in (b"", b"short"):
        upload = on_s3.begin_upload("parts/short", PART)
        upload.write(data)
        upload.finish()
        assert on_s3.read("parts/short")[0] == data


@pytest.mark.parametrize("size", [0, 1000, 12 << 20])
def test_an_aborted_upload_leaves_nothing(on_s3, address, size):
    upload = on_s3.begin_upload("parts/aborted", PART)
    upload.write(b"x" * size)

    upload.abort()
    upload.abort()

    assert on_s3.status("parts/aborted") is None
    assert uploads_in(address) == 0


def test_an_upload_whose_last_answer_is_lost_is_finished(through):
    cut = []

    def fails(method: str, path: str) -> str:
        last = method == "POST" and "uploadId" in path and not cut
        cut.extend([path] * last)
        return "cut" if last else ""

    with through(fails):
        store = open_store(config.results_root().bucket)
        upload = store.begin_upload("lost/answer", PART)
        upload.write(b"x" * (11 << 20))
        upload.finish()
        assert store.read("lost/answer")[0] == b"x" * (11 << 20)
    assert cut


def test_an_upload_that_the_store_refuses_is_an_error_with_its_url(through):
    with through(lambda method, path: "403" if "partNumber" in path else ""):
        upload = open_store(config.results_root().bucket).begin_upload("refused", PART)
        with pytest.raises(StorageError, match="s3://results/refused: cannot upload to it"):
            for _ in range(12):
                upload.write(b"x" * PART)
            upload.finish()
        upload.abort()


def test_a_chain_whose_results_stay_in_the_bucket_makes_the_same(
    on_s3, registry, tmp_path, monkeypatch
):
    @registry("data.kept", _concurrency_mode="process", _max_workers=2)
    def longer(record: dict) -> dict:
        return {**record, "text": record["text"] * 2}

    @registry("data.kept", _concurrency_mode="process", _max_workers=2)
    def thirds(record: dict) -> object:
        return [] if record["n"] % 3 else record

    def made() -> list[dict]:
        with pipeline("docs") as ppl:
            ppl.longer = longer()
            ppl.thirds = thirds()
        with second_thread(True):  # no forks: the client has threads
            return ppl(RECORDS)

    expected = made()
    keep_at_most(monkeypatch, outputs=0, result=100)
    config.data_process_path = f"s3://results/{tmp_path.name}/large"
    elsewhere(tmp_path)

    assert made() == expected
    assert not list(config.data_process_scratch.rglob("*_results.jsonl"))
    assert load_result(config.results_root() / "docs" / "thirds").read() == expected
