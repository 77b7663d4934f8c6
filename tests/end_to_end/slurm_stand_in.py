"""A stand-in for Slurm on this machine: ``sbatch``, ``squeue`` and ``scancel`` that run processes.

``install`` writes the commands to a folder. A job is a folder, with a file for the state of each
task. ``sbatch`` starts a controller in the background, which runs the tasks of an array, as many at
once as the array says. While the file ``hold`` exists, no task starts; while ``broken`` exists, the
nodes of tasks fail before these start. As Slurm does, ``scancel`` ends a task with SIGTERM, and
``squeue`` knows no job whose folder was removed.
"""

import os
import re
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_COMMANDS = ("sbatch", "squeue", "scancel")
_ENDED = ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL")


def install(folder: Path) -> Path:
    """Write the commands to ``folder/bin``; return it."""
    (folder / "bin").mkdir(parents=True)
    (folder / "jobs").mkdir()
    for name in _COMMANDS:
        command = folder / "bin" / name
        command.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {name} {folder} "$@"\n')
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return folder / "bin"


def _option(words: list[str], name: str) -> str:
    found = [word.partition("=")[2] for word in words if word.startswith(f"{name}=")]
    return found[-1] if found else ""


def tasks(folder: Path) -> dict[str, tuple[str, int]]:
    """Return state and process of each task; a name is ``<job>_<index>``."""
    found = {}
    for file in sorted(folder.glob("jobs/*/*.state")):
        state, _, process = file.read_text().partition(" ")
        found[f"{file.parent.name}_{file.stem}"] = state, int(process or 0)
    return found


def _set(job: Path, index: int, state: str, process: int = 0) -> None:
    draft = job / f"{index}.draft"
    draft.write_text(f"{state} {process}")
    draft.replace(job / f"{index}.state")


def sbatch(folder: Path, words: list[str]) -> None:
    """Submit an array; print its number."""
    number = 1 + len(list(folder.glob("jobs/*")))
    job = folder / "jobs" / str(number)
    job.mkdir()
    first, last, most = re.fullmatch(r"(\d+)-(\d+)%(\d+)", _option(words, "--array")).groups()  # type: ignore[union-attr]
    for index in range(int(first), int(last) + 1):
        _set(job, index, "PENDING")
    (job / "name").write_text(_option(words, "--job-name"))
    (job / "wrap").write_text(_option(words, "--wrap"))
    subprocess.Popen(
        [
            sys.executable,
            __file__,
            "control",
            str(folder),
            str(job),
            most,
            _option(words, "--output"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    sys.stdout.write(f"{number}\n")


def _end_if_cancelled(job: Path, index: int, process: int) -> None:
    """End a task that was cancelled while it was started."""
    if (job / f"{index}.cancel").exists():
        os.killpg(process, signal.SIGTERM)


def control(folder: Path, words: list[str]) -> None:
    """Run the tasks of a job."""
    job, most, output = Path(words[0]), int(words[1]), words[2]
    waiting = sorted(int(file.stem) for file in job.glob("*.state"))
    running: dict[int, subprocess.Popen[bytes]] = {}
    while waiting or running:
        for index, process in list(running.items()):
            if process.poll() is not None:
                del running[index]
                state = "COMPLETED" if process.returncode == 0 else "FAILED"
                _set(job, index, "CANCELLED" if (job / f"{index}.cancel").exists() else state)
        for index in [index for index in waiting if (job / f"{index}.cancel").exists()]:
            waiting.remove(index)
            _set(job, index, "CANCELLED")
        if (folder / "broken").exists():
            for index in waiting:
                _set(job, index, "NODE_FAIL")
            waiting.clear()
        if waiting and len(running) < most and not (folder / "hold").exists():
            index = waiting.pop(0)
            with Path(output.replace("%a", str(index))).open("wb") as log:
                running[index] = subprocess.Popen(
                    ["/bin/sh", "-c", (job / "wrap").read_text()],
                    env={**os.environ, "SLURM_ARRAY_TASK_ID": str(index)},
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            _set(job, index, "RUNNING", running[index].pid)
            _end_if_cancelled(job, index, running[index].pid)
        time.sleep(0.02)


def squeue(folder: Path, words: list[str]) -> None:
    """Print the tasks of a job, in the format ``%K|%T|%r``."""
    job = words[words.index("-j") + 1]
    if not (folder / "jobs" / job).exists():
        sys.exit("slurm_load_jobs error: Invalid job id specified")
    for name, (state, _) in tasks(folder).items():
        if name.startswith(f"{job}_"):
            reason = "Priority" if state == "PENDING" else "None"
            sys.stdout.write(f"{name.partition('_')[2]}|{state}|{reason}\n")


def scancel(folder: Path, words: list[str]) -> None:
    """Cancel the jobs of a name, a job, or a task ``<job>_<index>``."""
    name = _option(words, "--name")
    for task, (state, process) in tasks(folder).items():
        job = folder / "jobs" / task.partition("_")[0]
        wanted = (job / "name").read_text() == name if name else words[0] in (task, job.name)
        if wanted and state not in _ENDED:
            (job / f"{task.partition('_')[2]}.cancel").touch()
            if process:
                with suppress(ProcessLookupError):
                    os.killpg(process, signal.SIGTERM)


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), sys.argv[3:])
