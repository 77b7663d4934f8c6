"""Runs of every kind are killed at random instants and at named moments, case by case."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dagster_dataops import load_artefact
from dagster_dataops.errors import ResultMissingError
from tests.faults.cases import cases
from tests.faults.crashing import Script, wait_until
from tests.faults.kill import Kill
from tests.faults.kill_cases import (
    TABLE,
    Artefacts,
    Exports,
    Stores,
    content_of,
    numbers_in,
)
from tests.nodes import held
from tests.object_stores import SECRETS, s3_server
from tests.subprocesses import killed_at_exit

_IGNORED = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
_QUICK = {Artefacts}


def _options(case: type[Kill], number: int) -> tuple[str, ...]:
    """Return all options of a quick case, and of other cases one, in turn, or all in a campaign."""
    turn = number % len(case.options)
    sample = case.options if case in _QUICK else case.options[turn : turn + 1]
    return cases(sample, campaign=case.options)


@pytest.fixture(scope="module")
def store_address() -> Iterator[str]:
    with s3_server() as address:
        yield address


@_IGNORED
@pytest.mark.parametrize(
    ("case", "option"),
    [
        pytest.param(
            case,
            option,
            id=f"{case.__name__}-{option}",
            marks=() if case in _QUICK else pytest.mark.slow,
        )
        for number, case in enumerate(TABLE)
        for option in _options(case, number)
    ],
)
def test_what_is_published_after_kills_is_that_of_an_undisturbed_run(
    tmp_path: Path,
    case: type[Kill],
    option: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if issubclass(case, Stores):
        address = request.getfixturevalue("store_address")
        for name, value in {**SECRETS, "AWS_ENDPOINT_URL": address}.items():
            monkeypatch.setenv(name, value)
    case(tmp_path, option).play()


@pytest.mark.slow
def test_two_runs_race_and_readers_find_whole_artefacts_all_the_time(tmp_path: Path) -> None:
    script = Script(tmp_path, Artefacts.code)
    failed: list[str] = []
    seen: set[int] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                version = load_artefact(tmp_path / "node").path
            except ResultMissingError as error:
                failed.append(str(error))
                continue
            with suppress(ResultMissingError), held([version]):
                try:
                    seen.add(content_of(version))
                except (OSError, ValueError, AssertionError) as error:
                    failed.append(repr(error))

    reader = threading.Thread(target=read)
    first, second = (script.start("artefact", number, "2") for number in "01")
    with killed_at_exit(first), killed_at_exit(second):
        wait_until(lambda: bool(script.log("published")), 60, "a publication")
        reader.start()
        try:
            wait_until(lambda: len({pid for pid, _ in script.log("published")}) == 2, 60, "both")
            wait_until(lambda: len(script.log("published")) >= 30, 120, "30 publications")
        finally:
            stop.set()
            reader.join()
    numbers = [int(number) for _, number in script.log("published")]
    assert len(numbers) == len(set(numbers))
    assert seen
    assert failed == []


@pytest.mark.slow
@_IGNORED
@pytest.mark.parametrize("kind", ["jsonl", "folder", "huggingface"])
def test_two_runs_that_export_to_one_path_leave_a_whole_export(tmp_path: Path, kind: str) -> None:
    script = Script(tmp_path, Exports.code, *Exports.modules)
    with (
        killed_at_exit(script.start(kind, "100000", "node1")) as first,
        killed_at_exit(script.start(kind, "200000", "node2")) as second,
    ):
        wait_until(lambda: len(script.log("published")) > 20, 60, "exports")
        assert [first.poll(), second.poll()] == [None, None], script.output()
    assert len(numbers_in(kind, tmp_path / "out")) == 1
