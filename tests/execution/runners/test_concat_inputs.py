import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from dagster_dataops import JsonlDataset
from dagster_dataops.errors import InputError, RecordError
from dagster_dataops.execution.runners import concat_inputs
from dagster_dataops.execution.runners.concat_inputs import gathered
from tests.execution.helpers import act, node, run, turn_around, write_input
from tests.faults.crashing import in_child, wait_until
from tests.nodes import JsonlWriter, NodeFolder, ResumePolicy
from tests.warm_python import WarmPython


def _dataset(path: Path, content: bytes) -> JsonlDataset:
    path.write_bytes(content)
    return JsonlDataset.of_file(path)


def test_a_single_input_is_taken_as_it_is(tmp_path: Path) -> None:
    dataset = _dataset(tmp_path / "a", b"{}\n")
    assert gathered([dataset], tmp_path / "joined") is dataset
    assert not (tmp_path / "joined").exists()


def test_several_are_joined_line_by_line(tmp_path: Path) -> None:
    contents = [b'{"a":1}', b"", b'\xef\xbb\xbf{"b":2}\n\n', b'{"c":3}\r\n{"d":4}']
    parts = [_dataset(tmp_path / str(n), content) for n, content in enumerate(contents)]
    joined = gathered(parts, tmp_path / "joined")
    assert joined.read() == [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}]
    assert joined.path.read_bytes().endswith(b"\n")
    assert joined.size_bytes == joined.path.stat().st_size
    assert joined.rows is None


def test_known_rows_are_added_up(tmp_path: Path) -> None:
    handles = [
        JsonlDataset(_dataset(tmp_path / str(n), b"{}\n" * n).path, 3 * n, rows=n) for n in (2, 3)
    ]
    assert gathered(handles, tmp_path / "joined").rows == 5


def test_the_same_content_has_the_same_identity(tmp_path: Path) -> None:
    parts = [_dataset(tmp_path / name, b"{}\n") for name in "ab"]
    first = gathered(parts, tmp_path / "one")
    assert gathered(parts, tmp_path / "two").identity == first.identity


def test_a_run_leaves_no_gathered_input_behind(tmp_path: Path) -> None:
    parts = [write_input(tmp_path / name, [{"n": 1, "do": "keep", "text": name}]) for name in "ab"]
    run(act(_concurrency_mode="single"), parts, node(tmp_path))
    assert [record["text"] for record in JsonlDataset.of_file(node(tmp_path).result)] == ["a", "b"]
    assert not node(tmp_path).input.exists()


@pytest.mark.parametrize("size", [0, 7, 2000])
def test_an_input_cut_short_while_it_is_gathered_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(concat_inputs, "COPY_BYTES", 1000)
    parts = [_dataset(tmp_path / name, b'{"n":1}\n' * 500) for name in "ab"]
    monkeypatch.setattr(
        JsonlWriter, "write", _Once(JsonlWriter.write, lambda: os.truncate(parts[0].path, size))
    )
    with pytest.raises(InputError, match=f"{tmp_path / 'a'}: (became shorter|changed) while"):
        gathered(parts, tmp_path / "joined")
    assert not (tmp_path / "joined").exists()


def test_an_input_edited_while_it_is_gathered_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concat_inputs, "COPY_BYTES", 1000)
    parts = [_dataset(tmp_path / name, b'{"n":1}\n' * 500) for name in "ab"]
    status = parts[0].path.stat()
    clock = tmp_path / "clock"

    def has_moved_on() -> bool:
        clock.write_bytes(b"tick")
        return clock.stat().st_ctime_ns > status.st_ctime_ns

    def edit() -> None:
        wait_until(has_moved_on, 60, "the clock of the file system moves on")
        parts[0].path.write_bytes(b'{"n":2}\n' * 500)
        os.utime(parts[0].path, ns=(status.st_atime_ns, status.st_mtime_ns))

    monkeypatch.setattr(JsonlWriter, "write", _Once(JsonlWriter.write, edit))
    with pytest.raises(InputError, match=r"a: changed while it was being processed"):
        gathered(parts, tmp_path / "joined")


class _Once:
    """A method that does something else once, after its first call."""

    def __init__(self, method: Callable[..., Any], then: Callable[[], object]) -> None:
        self._method, self._then = method, [then]

    def __get__(self, instance: object, owner: type) -> Any:
        return lambda *args: (self._method(instance, *args), self._then and self._then.pop()())


def test_a_run_that_fails_leaves_no_gathered_input_behind(tmp_path: Path) -> None:
    parts = [write_input(tmp_path / name, [{"n": 1, "do": "fail", "text": name}]) for name in "ab"]
    with pytest.raises(RecordError):
        run(act(_concurrency_mode="single", _ignore_errors=False), parts, node(tmp_path))
    assert not node(tmp_path).input.exists()


OPERATORS: Final[dict[str, Callable[[], Any]]] = {
    "record": lambda: act(_concurrency_mode="single"),
    "dataset": turn_around,
}


@pytest.fixture(scope="module")
def small_process() -> Iterator[WarmPython]:
    """A process that forks faster than that of the tests, which has ten times its memory."""
    with WarmPython(__name__) as warm:
        yield warm


@pytest.mark.slow
@pytest.mark.parametrize("reused", [False, True], ids=["made", "reused"])
@pytest.mark.parametrize("kind", OPERATORS)
def test_a_kill_at_any_point_leaves_no_gathered_input(
    small_process: WarmPython, tmp_path: Path, kind: str, *, reused: bool
) -> None:
    code = f"from {__name__} import check_kills\ncheck_kills({kind!r}, reused={reused})"
    small_process.run(code, folder=tmp_path)


def check_kills(kind: str, *, reused: bool) -> None:
    """Kill a run in the working folder at each point, and check what the next one leaves."""
    place = Path.cwd()
    parts = [write_input(place / name, [{"n": 1, "do": "keep", "text": name}]) for name in "ab"]
    killed, status = 0, -9
    while status == -9:
        killed += 1
        folder = node(place / str(killed))

        def attempt(folder: NodeFolder = folder) -> None:
            context = {"resume": ResumePolicy.AUTO, "reuse_finished": True}
            run(OPERATORS[kind](), parts, folder, **context)

        if reused:
            attempt()
        status = in_child(lambda at=killed, call=attempt: _killed(at, call))
        if not reused and folder.manifest.exists():
            assert not folder.checkpoints.exists()
        attempt()
        names = {path.name for path in folder.path.iterdir()}
        assert names == {".lock", folder.result.name, folder.manifest.name}
        assert folder.result.read_bytes().count(b"\n") == 2
    assert killed > (10 if reused else 25)


def _killed(at: int, call: Callable[[], object]) -> None:
    """Kill this process before the n-th time it opens, creates, moves or deletes a file."""
    left = [at]

    def notice(event: str, args: tuple[Any, ...]) -> None:
        if event in {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link"}:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(notice)
    call()
