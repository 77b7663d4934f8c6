"""Tests of the logs of the files that operators read."""

import os
import sys
from pathlib import Path

import pytest

from dagster_dataops.datasets.file_values.file_reads import READS, FileReadLog, check_unchanged
from dagster_dataops.errors import FileChangedError
from dagster_dataops.files import FileReference


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


def test_the_error_for_a_replaced_file_has_its_whole_name(tmp_path: Path) -> None:
    file = tmp_path / "part 1: scans.txt"
    file.write_text("first")
    with FileReadLog(tmp_path) as log:
        FileReference(str(file)).read()
        log.write()
    check_unchanged(tmp_path)
    file.write_text("another")
    with pytest.raises(FileChangedError, match="was replaced since") as caught:
        check_unchanged(tmp_path)

    assert caught.value.where == str(file)
