"""Fixtures for the tests of the library."""

import os

import pytest


@pytest.fixture
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs start one worker each, where the work is no more than a few records.

    After all that the library imports, the start of a worker takes as long as such a run.
    """
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    if hasattr(os, "process_cpu_count"):
        monkeypatch.setattr(os, "process_cpu_count", lambda: 1)
