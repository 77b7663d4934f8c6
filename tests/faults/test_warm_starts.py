"""Tests that a process of a warm interpreter is like one of a new interpreter."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.warm_starts import StartedProcess, warm_interpreter
from tests.subprocesses import killed_at_exit

_FACTS = """
import json, os, signal, sys, threading
from dagster_dataops.execution.workers import fork_server
from dagster_dataops.execution.workers.idle_workers import idle_workers

print(json.dumps({
    "leads a session": os.getsid(0) == os.getpgid(0) == os.getpid(),
    "threads": len(os.listdir("/proc/self/task")),
    "descriptors": sorted(set(os.listdir("/proc/self/fd")) & {str(n) for n in range(3, 200)}),
    "arguments": sys.argv,
    "first of the path": sys.path[0],
    "main": [__name__, __file__, vars(sys.modules["__main__"]) is globals()],
    "folder": os.getcwd(),
    "environment": {name: os.environ.get(name) for name in ("ONE", "PATH", "TWO")},
    "signals": [str(signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM)],
    "engine": [fork_server.running(), list(idle_workers.pids)],
}))
"""


def _started(folder: Path, code: str, *arguments: str) -> StartedProcess:
    (folder / "script.py").write_text(code)
    with (folder / "output.txt").open("w") as output:
        return warm_interpreter().start(
            [str(folder / "script.py"), *arguments],
            output.fileno(),
            folder=folder,
            environment={"PATH": os.environ["PATH"], "ONE": "1"},
        )


_USER = """
import os, sys, time
from pathlib import Path
from tests.faults.warm_starts import WarmInterpreter

with open(os.devnull, "w") as output:
    Path("script.py").write_text("import os; open('parent', 'w').write(str(os.getppid()))")
    warm = WarmInterpreter([], dict(os.environ))
    process = warm.start(["script.py"], output.fileno(), folder=os.getcwd(), environment={})
    process.wait()
if not os.fork():  # it holds the channel
    time.sleep(60)
    os._exit(0)
print("ready", flush=True)
time.sleep(60)
"""


def test_the_interpreter_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", _USER]
    user = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, start_new_session=True
    )
    with killed_at_exit(user):
        assert user.stdout is not None
        assert user.stdout.readline() == b"ready\n"
        interpreter = os.pidfd_open(int((tmp_path / "parent").read_text()))
        try:
            os.kill(user.pid, signal.SIGKILL)
            assert select.select([interpreter], [], [], 30)[0]
        finally:
            os.close(interpreter)


def test_it_has_what_a_new_interpreter_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWO", "2")
    with killed_at_exit(_started(tmp_path, _FACTS, "a", "b")) as process:
        assert process.wait() == 0, (tmp_path / "output.txt").read_text()
    found: dict[str, Any] = json.loads((tmp_path / "output.txt").read_text())
    new = subprocess.run(
        [sys.executable, str(tmp_path / "script.py"), "a", "b"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "ONE": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        start_new_session=True,
        check=True,
    )
    wanted: dict[str, Any] = json.loads(new.stdout)
    assert found["leads a session"]
    assert found == wanted


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("", 0),
        ("raise SystemExit(7)", 7),
        ("raise ValueError('odd')", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("import os; os._exit(9)", 9),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
        ("import atexit; atexit.register(print, 'the end', flush=True)", 0),
    ],
)
def test_it_ends_as_a_script_does(tmp_path: Path, code: str, status: int) -> None:
    with killed_at_exit(_started(tmp_path, code)) as process:
        assert process.wait() == process.poll() == process.returncode == status
    output = (tmp_path / "output.txt").read_text()
    assert output.count("Traceback") == ("raise" in code and "Exit" not in code)
    assert ("the end" in output) == ("the end" in code)


def test_it_is_a_zombie_until_it_is_waited_for(tmp_path: Path) -> None:
    with killed_at_exit(_started(tmp_path, "import time; time.sleep(3600)")) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
        os.killpg(process.pid, signal.SIGKILL)  # whose group is still there
        assert process.wait() == -signal.SIGKILL
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
