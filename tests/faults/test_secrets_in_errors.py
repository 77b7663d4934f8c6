"""Tests that an operator which puts its key into what it says shows it nowhere."""

import base64
import itertools
import json
import logging
import traceback
import urllib.parse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import Drop, StopRun, chain, config, pipeline
from dagster_dataops.data import data_register
from dagster_dataops.errors import DataOpsError
from tests.faults.cases import cases

_KEY = "sk/VERY+SECRET=val&x'é-123456"
_GROUP: Any = data_register.new_group("leaks")


class _OwnError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__("x")
        self.key = key

    def __str__(self) -> str:
        return f"own {self.key}"


def _of_cause(key: str) -> None:
    try:
        raise ValueError(key)  # noqa: TRY301 - the cause, or the context
    except ValueError as error:
        raise RuntimeError("outer") from error


def _of_context(key: str) -> None:
    try:
        raise ValueError(key)  # noqa: TRY301 - the cause, or the context
    except ValueError:
        raise RuntimeError("outer")  # noqa: B904 - the context is what counts


def _noted(key: str) -> ValueError:
    error = ValueError("x")
    error.add_note(f"note {key}")
    return error


_ERRORS: dict[str, Any] = {
    "message": lambda key: ValueError(f"401 for {key}"),
    "repr": lambda key: ValueError(f"401 for {key!r}"),
    "query": lambda key: OSError("https://h/v1?" + urllib.parse.urlencode({"key": key})),
    "dsn": lambda key: OSError(f"postgresql://u:{urllib.parse.quote(key, safe='')}@h/db"),
    "basic": lambda key: OSError("Basic " + base64.b64encode(f"usr:{key}".encode()).decode()),
    "base64": lambda key: OSError("got " + base64.b64encode(f"us:{key}".encode()).decode()),
    "bytes": lambda key: ValueError(key.encode()),
    "json": lambda key: ValueError(json.dumps({"k": key})),
    "note": _noted,
    "group": lambda key: ExceptionGroup(
        "g", [ValueError(key), ExceptionGroup("h", [KeyError(key)])]
    ),
    "name of a group": lambda key: ExceptionGroup(key, [ValueError("a")]),
    "key": KeyError,
    "own": _OwnError,
    "file": lambda key: FileNotFoundError(2, "No such file", f"/x/{key}"),
    "exit": SystemExit,
    "class": lambda key: type("A" + key.replace("/", "_"), (Exception,), {})("m"),
}
_DEEDS: dict[str, Any] = {
    "cause": _of_cause,
    "context": _of_context,
    "reason": lambda key: Drop(f"refused {key}"),
    "result": lambda key: key,
    "unfit result": lambda key: {"x": object(), key: 1},
}
WAYS = [*_ERRORS, *_DEEDS, "stop", "count", "drop"]


def _say(way: str, key: str, number: int, context: Any = None) -> Any:
    if way in _ERRORS:
        raise _ERRORS[way](key)
    if way in _DEEDS and number % 2:
        return _DEEDS[way](key)
    if way == "stop" and number == 3:
        raise StopRun(f"quota of {key}")
    if way == "count" and context is not None:
        context.count(**{key: 1})
    if way == "drop" and context is not None and number % 2:
        return context.drop(key)
    return None


@data_register("data.leaks")
def say(row: dict, context, api_key="", way=""):  # type: ignore[no-untyped-def,type-arg]
    return _say(way, api_key, row["n"], context) or row


@data_register("data.leaks")
async def say_later(row: dict, context, api_key="", way=""):  # type: ignore[no-untyped-def,type-arg]
    return _say(way, api_key, row["n"], context) or row


@data_register("data.leaks", rewrite_func="forward_batch_input")
def say_of_all(rows: list, api_key="", way=""):  # type: ignore[no-untyped-def,type-arg]
    return _say(way, api_key, 3) or rows


@data_register("data.leaks")
def keep(row: dict) -> Any:  # type: ignore[type-arg]
    return row


class Opened(_GROUP):
    def __init__(self, api_key: str = "", way: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.key, self.way = api_key, way

    def open(self, context: Any) -> None:
        _say(self.way, self.key, 3, None)

    def forward(self, row: dict) -> Any:  # type: ignore[type-arg]
        return row


class Closed(Opened):
    def open(self, context: Any) -> None:
        pass

    def close(self) -> None:
        _say(self.way, self.key, 3, None)


class Batched(Opened):
    def open(self, context: Any) -> None:
        pass

    def forward_batch(self, rows: list) -> Any:  # type: ignore[type-arg]
        return [_say(self.way, self.key, row["n"]) or row for row in rows]

    forward = None


class Selected(_GROUP):
    def __init__(self, api_key: str = "", way: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.key, self.way = api_key, way

    def sketch(self, row: dict) -> Any:  # type: ignore[type-arg]
        return row["n"]

    def keep(self, sketches: Iterable[int]) -> Iterator[bool]:
        for number in sketches:
            _say(self.way, self.key, number)
            yield True


def _operators(mode: str, way: str) -> Iterator[Any]:
    options = {"api_key": _KEY, "way": way}
    if mode == "async":
        yield say_later(**options)
        yield say_later(**options, _ignore_errors=False)
        return
    how = {"_concurrency_mode": mode, "_max_workers": 2}
    for more in ({}, {"_ignore_errors": False}, {"_retries": 1, "_stop_after_failures": 0}):
        yield say(**options, **how, **more)
    for made in (Opened, Closed, Batched, Selected):
        yield made(**options, **how)
    yield chain(keep(), say(**options), _concurrency_mode=mode)
    if mode == "single":
        yield say_of_all(**options)


def _shown_by(operator: Any, root: Path, log: list[str]) -> Iterator[str]:
    """Yield all texts that a run shows or leaves, without the secret's own result."""
    log.clear()
    with config.temporary(data_process_path=root):
        try:
            yield str(operator([{"n": number} for number in range(6)]))
        except DataOpsError as error:
            yield "".join(traceback.format_exception(error)) + repr(error)
        except BaseException as error:  # noqa: BLE001 - single mode may end with the operator's own
            yield "".join(traceback.format_exception(error))
    yield "\n".join(log)
    for path in root.rglob("*"):
        if path.is_file():
            yield path.read_bytes().decode(errors="replace")


_FORMS = [
    *(_KEY, repr(_KEY)[1:-1], ascii(_KEY)[1:-1], repr(_KEY.encode())[2:-1]),
    *(urllib.parse.quote(_KEY), urllib.parse.quote(_KEY, safe=""), _KEY.replace("/", "_")),
    *(base64.b64encode(user + _KEY.encode()).decode()[8:-6] for user in (b"", b"us:", b"usr:")),
]


class _Kept(logging.Handler):
    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        self.log.append(self.format(record))


def leaks(root: Path, modes: Iterable[str], ways: Iterable[str]) -> Iterator[str]:
    """Yield a line for each run that shows the key."""
    log: list[str] = []
    handler = _Kept(log)
    logging.getLogger("dagster_dataops").addHandler(handler)
    number = itertools.count()
    try:
        for mode, way in itertools.product(modes, ways):
            for operator in _operators(mode, way):
                for text in _shown_by(operator, root / str(next(number)), log):
                    found = [form for form in _FORMS if form in text]
                    if found:
                        yield f"{mode}, {way}, {operator!r}: {text[:400]}"
    finally:
        logging.getLogger("dagster_dataops").removeHandler(handler)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "ways"),
    [
        ("single", ["basic", "context", "stop", "drop"]),
        ("thread", ["query", "group", "class"]),
        ("async", WAYS),
    ],
)
def test_an_operator_shows_its_key_nowhere(tmp_path: Path, mode: str, ways: list[str]) -> None:
    assert list(leaks(tmp_path, [mode], cases(ways, WAYS))) == []


@pytest.mark.slow
def test_worker_processes_show_no_key(tmp_path: Path) -> None:
    assert list(leaks(tmp_path, ["process"], cases(["dsn", "cause", "count"], WAYS))) == []


class Streamed(_GROUP):
    def __init__(self, api_key: str = "", on_error: str = "raise", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.key, self.on_error = api_key, on_error

    def stream(self, records: Any) -> Any:
        if self.on_error == "build":
            raise ValueError(f"401 for {self.key}")

        def check(record: dict) -> Any:  # type: ignore[type-arg]
            if record["n"] % 2:
                raise ValueError(f"401 for {self.key}")
            return record

        return records.map(check).and_return(on_error=self.on_error)


@pytest.mark.parametrize("on_error", ["raise", "skip", "quarantine", "build"])
def test_a_stream_operator_shows_its_key_in_no_error_no_error_row_and_no_log(
    tmp_path: Path, on_error: str, caplog: pytest.LogCaptureFixture
) -> None:
    said = ""
    with config.temporary(data_process_path=tmp_path):
        try:
            with pipeline(f"streamed_{on_error}") as ppl:
                ppl.a = Streamed(api_key=_KEY, on_error=on_error)
            said = str(ppl([{"n": number} for number in range(6)]))
        except Exception as error:  # noqa: BLE001 - each kind
            said = "".join(traceback.format_exception(error))
        for path in tmp_path.rglob("*.jsonl"):
            said += path.read_text()
    said += caplog.text
    counts = {"skip": 3, "quarantine": 6}  # in the log, and in the error file
    assert said.count("401 for (hidden)") >= counts.get(on_error, 1)
    assert not any(form in said for form in _FORMS)


def test_the_record_of_an_error_row_is_data_and_shown_as_it_is(tmp_path: Path) -> None:
    operator = say(api_key=_KEY, way="message", _concurrency_mode="single", _stop_after_failures=0)
    with config.temporary(data_process_path=tmp_path):
        operator([{"n": 1, "text": _KEY}])
    (path,) = tmp_path.rglob("*_error.jsonl")
    row = json.loads(path.read_text())
    assert row["input"] == {"n": 1, "text": _KEY}
    assert row["message"] == "401 for (hidden)"
    assert "401 for (hidden)" in row["traceback"]


def test_an_error_without_a_secret_keeps_its_cause(tmp_path: Path) -> None:
    @data_register("data.leaks", _concurrency_mode="single", _ignore_errors=False)
    def refuse(row: dict, api_key: str = "") -> Any:  # type: ignore[type-arg]
        raise ConnectionError(f"record {row['n']}")

    with config.temporary(data_process_path=tmp_path), pytest.raises(DataOpsError) as caught:
        refuse(api_key=_KEY)([{"n": 1}])
    assert isinstance(caught.value.__cause__, ConnectionError)
