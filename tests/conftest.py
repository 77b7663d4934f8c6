"""Fixtures and settings for the tests of all packages."""

import contextlib
import gc
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from dagster_dataops import config
from dagster_dataops.datasets.file_values import result_roots
from dagster_dataops.execution.workers import fork_server
from dagster_dataops.foundation.concurrency.fork_safety import register_waiting_threads
from dagster_dataops.pipelines.local_run import run_operator
from tests.examples import register_profiles
from tests.huge_pages import use_huge_pages
from tests.registries import OperatorRegistry
from tests.warm_python import DAGSTER, WarmPython

# The threads that numpy and pyarrow start on import would keep worker processes from being forked.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")

# A background process of a script ignores Ctrl-C, and so would every process of a test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

register_profiles()

# The folders of tests are in memory where there is enough of it: a fifth of the processor time of
# quick tests, half of that of slow ones, and most of their waits are those of a disk. Slow tests of
# faults and of servers have a disk, and all tests of a campaign or with --basetemp.
_IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - pytest makes a private folder in it
_ROOM: Final = 6 << 30  # bytes
_TESTS_IN: Final = "PYTEST_TESTS_IN_MEMORY"  # variable with their folder, if slow ones run too
_ON_DISK: Final = ("tests/faults/", "tests/end_to_end/")


def pytest_configure(config: pytest.Config) -> None:
    """Put the folders of tests in memory; see above for those that have a disk."""
    if _TESTS_IN in os.environ or config.option.basetemp or not _IN_MEMORY.is_dir():
        return
    free = shutil.disk_usage(_IN_MEMORY).free, psutil.virtual_memory().available // 2
    if min(free) <= _ROOM:
        return
    if config.option.markexpr == "not slow":
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_IN_MEMORY))
    elif config.getoption("--hypothesis-profile") != "campaign":
        folder = tempfile.mkdtemp(dir=_IN_MEMORY, prefix="pytest-")
        os.environ[_TESTS_IN] = folder  # the processes of a distributed run inherit it
        config.add_cleanup(lambda: os.environ.pop(_TESTS_IN))
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Return the folder of a test: that of pytest, or one in memory."""
    memory = os.environ.get(_TESTS_IN)
    slow = request.node.get_closest_marker("slow") is not None
    if memory is None or (slow and request.node.nodeid.startswith(_ON_DISK)):
        yield tmp_path
        return
    failed = request.session.testsfailed
    folder = Path(tempfile.mkdtemp(dir=memory, prefix=tmp_path.name))
    yield folder
    if request.session.testsfailed == failed:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        with contextlib.suppress(shutil.Error):  # sockets and pipes are not copied
            shutil.copytree(folder, tmp_path, symlinks=True, dirs_exist_ok=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute tests one by one; tests that share a server go to one process."""
    from tests.scheduler import Scheduler

    return Scheduler(config, log)


@pytest.hookimpl(trylast=True)  # after the hook that marks the end-to-end tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow tests in a run with several processes, so that none is the last one.

    Those of the library come last: they import large packages, after which each fork takes longer.

    Raises:
        UsageError: The name of a test has an address, so that no two processes agree on its name.
    """
    named = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if named:
        raise pytest.UsageError(f"give the parameters of these tests ids of their own: {named}")
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: item.nodeid.startswith("tests/library/"))
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect no garbage while tests are collected: a tenth of the time, in every process."""
    gc.disable()
    try:
        _import_test_modules(session.config)
        return (yield)
    finally:
        gc.enable()


def _import_test_modules(config: pytest.Config) -> None:
    """Import all test modules; each process of a distributed run begins at another one.

    In a clone without bytecode, each process then compiles some of the modules and not all of them.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args != config.getini("testpaths"):
        return
    root = config.rootpath
    paths = sorted(path for folder in config.args for path in (root / folder).rglob("test_*.py"))
    first = len(paths) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for path in paths[first:] + paths[:first]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # raised again when collected
            importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Let no garbage collection look at modules and tests again; each takes as long as a test.

    A process of a distributed run, in which thousands of forks follow, makes these cheaper, too.
    """
    gc.collect()
    gc.freeze()
    if "PYTEST_XDIST_WORKER" in os.environ:
        use_huge_pages()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test with the mark ``cpu_timeout`` that computes for longer, on any machine."""
    mark = item.get_closest_marker("cpu_timeout")
    if mark is None:
        return (yield)

    def fail(number: int, frame: object) -> None:
        pytest.fail(f"computed for more than {mark.args[0]} s")

    before = signal.signal(signal.SIGPROF, fail)
    signal.setitimer(signal.ITIMER_PROF, mark.args[0])
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# The threads that were there when a test began: those of earlier tests (of Dagster, polars and
# fsspec) and the one that reads the orders of pytest-xdist. All of them wait.
_WAITING: Final[set[int]] = set()
register_waiting_threads(lambda: _WAITING)


@pytest.fixture(autouse=True)
def _forking_beside_waiting_threads() -> None:
    """Let the product fork workers after any earlier test in this process."""
    _WAITING.clear()
    if sys.platform == "linux":  # nothing is forked elsewhere
        _WAITING.update(map(int, os.listdir("/proc/self/task")))  # noqa: PTH208 - before each test


@pytest.fixture(autouse=True)
def root(tmp_path: Path) -> Iterator[Path]:
    """Return the root of results: below the test's folder, without the environment.

    Files are not looked for below the roots of earlier tests; their stores may be gone.

    Its own patch is undone after that of the test, which may set attributes of ``config``.
    """
    path = tmp_path / "results"
    settings = config.temporary(data_process_path=path, data_process_progress=False)
    with pytest.MonkeyPatch.context() as patch, settings:
        for name in [name for name in os.environ if name.startswith("DATAOPS_")]:
            patch.delenv(name)
        patch.setattr(result_roots, "_USED", {})
        patch.setattr(config, "_of_runs", [])  # an agent in this process leaves those of its run
        yield path


@pytest.fixture(scope="session", autouse=True)
def _lean_fork_servers() -> Iterator[None]:
    """Let a fork server import the engine alone, as beside a single test.

    It imports what its parent has loaded. That is all of the library where all tests were
    collected, 0.7 s for each server. A worker imports what its operator needs.
    """
    lean = (*fork_server._NOT_LEAN, "library", "models", "pipelines", "training")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fork_server, "_NOT_LEAN", lean)
        yield


@pytest.fixture
def registry() -> OperatorRegistry:
    """Return a new registry, so that names never collide with those of another test."""
    return OperatorRegistry(run_operator)


@pytest.fixture(scope="session")
def warm_dagster() -> Iterator[WarmPython]:
    """Return an interpreter that has imported what runs of Dagster need."""
    with WarmPython(*DAGSTER) as warm:
        yield warm


@pytest.fixture
def run_python(tmp_path: Path) -> Callable[..., str]:
    """Run a script in a new interpreter, in the test's folder, and return its output."""

    def run(code: str, **environment: str) -> str:
        script = tmp_path / "script.py"
        script.write_text(code)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("DATAOPS_")}
        finished = subprocess.run(
            [sys.executable, str(script)],
            cwd=tmp_path,
            env=inherited | {"PYTHONDONTWRITEBYTECODE": "1"} | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    return run
