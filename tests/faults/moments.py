"""Kill at chosen moments: before or after the n-th call of a function of the engine.

The processes to kill import this module. The order is in the environment variable MOMENT:
``name:call:before|after:victim:folder``.
"""

import importlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_ENGINE: Final = "dagster_dataops."

# Name: module, class or "" and function, and the latest call that makes sense.
IN_PARENT: Final[dict[str, tuple[str, str, str, int]]] = {
    "lock": ("checkpoints.folder_lock", "FolderLock", "__init__", 1),
    "read": ("checkpoints.checkpoint", "CheckpointContent", "read", 2),
    "resume": ("checkpoints.resume.start", "", "_resume_records", 1),
    "attempt": ("checkpoints.checkpoint", "Checkpoint", "__init__", 1),
    "settle": ("checkpoints.checkpoint", "Checkpoint", "journal", 60),
    "journal": ("checkpoints.journal.journal_writer", "JournalWriter", "append", 60),
    "sync": ("checkpoints.checkpoint", "Checkpoint", "sync", 2),
    "compose": ("execution.runners.record_runner", "", "compose", 1),
    "select": ("execution.runners.selection_runner", "", "compose", 1),
    "fill": ("datasets.writer", "JsonlWriter", "write", 4),
    "finish": ("datasets.writer", "JsonlWriter", "finish", 2),
    "commit": ("checkpoints.publish.commit", "", "write_draft", 1),
    "rename": ("checkpoints.publish.commit", "", "_replace", 3),
    "remove": ("checkpoints.publish.commit", "", "remove_checkpoints", 1),
    "delete": ("datasets.durable_files", "os", "unlink", 8),
    "handle_death": ("execution.workplaces.processes", "_Run", "_handle_death", 1),
    "supply": ("execution.workplaces.processes", "_Run", "_supply", 20),
}
IN_WORKER: Final[dict[str, tuple[str, str, str, int]]] = {
    "ready": ("execution.workers.worker_main", "_Worker", "__init__", 1),
    "report": ("execution.workers.worker_main", "_Worker", "_write", 20),
    "append": ("checkpoints.journal.segments", "SegmentWriter", "append", 20),
    "tell": ("execution.workers.worker_main", "_Worker", "_report_done", 10),
}

IN_STREAM: Final[dict[str, tuple[str, str, str, int]]] = {
    "stream_write": ("checkpoints.stream_checkpoint", "StreamCheckpoint", "write", 40),
    "stream_settle": (
        "checkpoints.stream_checkpoint",
        "StreamCheckpoint",
        "journal_items",
        12,
    ),
    "stream_open": ("checkpoints.stream_checkpoint", "StreamCheckpoint", "__init__", 1),
    "stream_decide": ("execution.executor", "", "decide_start", 1),
    "stream_restore": ("streams.positioned_stream", "PositionedStream", "load_state_dict", 1),
    "stream_link": ("checkpoints.stream_checkpoint", "", "linked", 1),
    "stream_draft": ("checkpoints.stream_checkpoint", "StreamCheckpoint", "draft", 1),
    "stream_errors": ("checkpoints.publish.error_rows", "", "draft_quarantined", 1),
    "stream_segment": ("checkpoints.journal.segments", "SegmentWriter", "append", 40),
    **{
        name: IN_PARENT[name]
        for name in ("lock", "read", "attempt", "journal", "sync", "commit", "rename")
    },
    **{name: IN_PARENT[name] for name in ("remove", "delete")},
}


def arm() -> None:
    """Follow the order in MOMENT, if there is one; safe to call again."""
    order = os.environ.pop("MOMENT", "")
    if order:
        name, call, side, victim, folder = order.split(":", 4)
        place, function = place_of(name)
        strike = _Strike(int(call), side == "before", victim, Path(folder))
        _wrap(place, function, strike)


def place_of(name: str) -> tuple[Any, str]:
    """Return the module or class of a moment, and the name of its function."""
    module, owner, function, _ = (IN_PARENT | IN_WORKER | IN_STREAM)[name]
    place: Any = importlib.import_module(_ENGINE + module)
    return (getattr(place, owner) if owner else place), function


class _Strike:
    """Kills at its n-th call, in one of all processes that have it."""

    def __init__(self, call: int, before: bool, victim: str, folder: Path) -> None:
        self._left = call
        self.before = before
        self._victim = victim
        self._folder = folder

    def notice(self) -> None:
        self._left -= 1

    def strike_if_due(self) -> None:
        if self._left != 0:
            return
        self._left -= 1
        try:
            flag = os.open(self._folder / "struck", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return
        os.write(flag, f"{time.monotonic()}".encode())
        if self._victim == "group":
            os.killpg(os.getpgrp(), signal.SIGKILL)
        parent = os.getsid(0)  # the process that was started; others are its workers
        os.kill(parent if self._victim == "parent" else os.getpid(), signal.SIGKILL)


def _wrap(place: Any, name: str, strike: _Strike) -> None:
    function: Callable[..., Any] = getattr(place, name)
    kind = type(vars(place).get(name)) if isinstance(place, type) else None

    def struck(*given: Any, **named: Any) -> Any:
        strike.notice()
        if strike.before:
            strike.strike_if_due()
        returned = function(*given, **named)
        if not strike.before:
            strike.strike_if_due()
        return returned

    setattr(place, name, staticmethod(struck) if kind is classmethod else struck)
