"""Tests of the logs of the files that operators read."""

import os
import sys
from pathlib import Path

import pytest

from dagster_dataops.datasets.file_values.file_reads import READS, FileReadLog


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it has threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_adds_nothing_to_the_logs_of_its_parent(tmp_path: Path) -> None:
    with FileReadLog(tmp_path) as log:
        READS.note("before", [1])
        sys.stdout.flush()
        child = os.fork()
        if not child:
            READS.note("in the child", [1])
            os._exit(len(log.lines))
        _, status = os.waitpid(child, 0)
        READS.note("after", [1])

    assert os.waitstatus_to_exitcode(status) == len([b"before"])
    assert len(log.lines) == 2
