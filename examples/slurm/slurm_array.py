"""Run operators as array jobs of Slurm: ``_concurrency_mode="slurm"``.

The run is the head: it submits arrays, with a range of the input for each task. A task writes its
spans to a file in a shared folder. The head reads them there and writes them to the checkpoint.
"""

import contextlib
import hashlib
import json
import os
import pickle
import shlex
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from dagster_dataops import register_workplace, workplaces
from dagster_dataops.workplaces import Attempt, Interval, Sink, SpanFile, SpanReader, WorkList

# A task in any other state has ended.
ALIVE = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "STAGE_OUT", "SUSPENDED", "STOPPED"}
MOST_TASKS = 1000  # of an array, by Slurm's default
MOST_DEATHS = 3  # of tasks in a row that have not finished a record
HEAD_SECONDS = 120.0  # after which a task ends if its head has died


class SlurmError(RuntimeError):
    """Slurm cannot run the operator. Finished records are kept for the next run."""


class SlurmArray:
    """Runs ranges of the input as tasks of array jobs.

    Args:
        shared: A folder that all nodes see, and to which only this user can write: operators and
            spans are pickled there.
        options: Further options of ``sbatch``, such as ``--partition=cpu``.
        task_bytes: Size of a range; more if the input would need over 1,000 tasks.
        poll_seconds: How often the files and ``squeue`` are read.
        note_seconds: How often a note tells why no task runs.
    """

    def __init__(self, shared, options=(), task_bytes=1 << 20, poll_seconds=5.0, note_seconds=60.0):
        self.shared, self.options, self.task_bytes = Path(shared), list(options), task_bytes
        self.poll_seconds, self.note_seconds = poll_seconds, note_seconds

    def run(self, attempt: Attempt, work: WorkList, sink: Sink) -> None:
        """Run the open records."""
        head = _Head(self, attempt, work, sink)
        try:
            head.cancel()  # the tasks of a head that was killed
            head.run()
        finally:
            head.cancel()
            shutil.rmtree(head.folder, ignore_errors=True)


class _Head:
    def __init__(self, place, attempt, work, sink):
        self.place, self.attempt, self.work, self.sink = place, attempt, work, sink
        self.name = "dataops-" + hashlib.sha256(bytes(sink.folder.resolve())).hexdigest()[:16]
        self.folder = place.shared / f"{self.name}-{time.time_ns()}"
        self.tasks = {}  # by job and index
        self.deaths = {}  # by start of a range
        self.cancelled = []  # ranges that are done again when another task finishes
        self.note_at = time.monotonic() + place.note_seconds

    def cancel(self):
        with contextlib.suppress(SlurmError):
            _slurm("scancel", f"--name={self.name}")

    def run(self):
        self.folder.mkdir(mode=0o700, parents=True)
        size = sum(end - start for start, end in self.work.open)
        mode, operator = self.attempt.settings.concurrency_mode, self.attempt.operator
        order = sys.path, mode, workplaces.ship(operator), self.work.dataset
        (self.folder / "order").write_bytes(pickle.dumps(order))
        waiting = list(self.work.ranges(max(self.place.task_bytes, -(-size // MOST_TASKS))))
        poll_at = 0.0
        while waiting or self.tasks:
            if waiting and len(self.tasks) < self.attempt.settings.max_workers:
                self.submit(waiting[:MOST_TASKS])
                del waiting[:MOST_TASKS]
            if time.monotonic() >= poll_at:
                (self.folder / "alive").write_text(str(poll_at))
                waiting += self.poll()
                poll_at = time.monotonic() + self.place.poll_seconds
            self.sink.tick()
            time.sleep(0.05)

    def submit(self, ranges):
        folder = self.folder / str(time.time_ns())
        folder.mkdir()
        (folder / "ranges").write_text(json.dumps(ranges))
        array = f"--array=0-{len(ranges) - 1}%{self.attempt.settings.max_workers}"
        task = f"--wrap=exec {shlex.join([sys.executable, __file__, str(folder)])}"
        where = [f"--job-name={self.name}", f"--output={folder}/%a.log", *self.place.options]
        answer = _slurm("sbatch", "--parsable", "--no-requeue", array, *where, task)
        job = answer.partition(";")[0].strip()
        for index, interval in enumerate(ranges):
            self.tasks[job, index] = _Task(folder / f"{index}.spans", interval)

    def poll(self):
        """Write the finished spans of the tasks; return the ranges that have to be done again."""
        states, again = self.states(), []
        for key, task in list(self.tasks.items()):
            state, _ = (states or {}).get(key, ("GONE", ""))
            task.read(self.sink)
            ended = states is not None and state not in ALIVE
            if task.done:
                del self.tasks[key]
                again, self.cancelled = again + self.cancelled, []
            elif ended and task.ended:  # its file may be seen later than its end
                del self.tasks[key]
                others = self.cancelled if state.startswith("CANCELLED") else again
                others.append(self.rest(task, state))
            task.ended = ended
        if self.cancelled and not self.tasks:
            raise SlurmError("the tasks were cancelled; run again to continue")
        self.note(states)
        return again

    def rest(self, task, state):
        deaths = self.deaths[task.start] = self.deaths.get(task.start, 0) + 1
        text = f"a task ended ({state}) at byte {task.start} of {self.work.dataset.location}"
        if deaths == MOST_DEATHS:
            raise SlurmError(f"{text}, the last of {deaths} there that did nothing. {task.log()}")
        self.attempt.log(f"{text}; the rest of its range is done again")
        return Interval(task.start, task.end)

    def states(self):
        """Return state and reason of each task by job and index; ``None`` if squeue fails."""
        states = {}
        for job in {job for job, _ in self.tasks}:
            try:
                text = _slurm("squeue", "-h", "-r", "-t", "all", "-j", job, "-o", "%K|%T|%r")
            except SlurmError as error:
                if "invalid job id" not in str(error).lower():  # else it has ended long ago
                    return None
                text = ""
            for index, state, reason in (line.strip().split("|", 2) for line in text.splitlines()):
                states[job, int(index)] = state, reason
        return states

    def note(self, states):
        waits = self.tasks and (states is None or all(s == "PENDING" for s, _ in states.values()))
        if not waits or time.monotonic() >= self.note_at:
            self.note_at = time.monotonic() + self.place.note_seconds
            if waits:
                reasons = ", ".join(sorted({reason for _, reason in (states or {}).values()}))
                why = "squeue does not answer" if states is None else f"Slurm says: {reasons}"
                self.attempt.log(f"waiting for the first of {len(self.tasks)} array tasks; {why}")


class _Task(SpanReader):
    ended = False

    def log(self):
        log = self.path.with_suffix(".log")
        if not log.exists():
            return "It has no log: it was not started"
        return f"Its log:\n{log.read_text(errors='replace')[-1000:]}"


def _slurm(*command):
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if ended.returncode:
        raise SlurmError(f"{command[0]} failed: {ended.stderr.strip()}")
    return ended.stdout


def look(alive, seen):
    """End the task if its head has died."""
    since = seen.setdefault(alive.read_text(), time.monotonic())
    if time.monotonic() > since + HEAD_SECONDS:
        sys.exit("the head has died")


def main(folder):
    """Run the range of a task."""
    index = int(os.environ["SLURM_ARRAY_TASK_ID"])
    order = pickle.loads((folder.parent / "order").read_bytes())  # noqa: S301 - from the head
    sys.path[:], mode, payload, dataset = order
    register_workplace(mode, SlurmArray(folder), default_workers=1)
    watch = partial(look, folder.parent / "alive", {})
    with SpanFile(folder / f"{index}.spans", watch) as sink:
        operator = workplaces.receive(payload)
        work = WorkList(operator, dataset)
        work.open = [Interval(*json.loads((folder / "ranges").read_text())[index])]
        with workplaces.range_worker(Attempt(operator=operator), work, sink) as run_range:
            run_range(work.open[0])


if __name__ == "__main__":
    from slurm_array import main as run_task  # whose classes have the name of this module

    run_task(Path(sys.argv[1]))
