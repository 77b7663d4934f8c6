"""Files that several modules of this folder read."""

import pytest

from tests.streams.indexed_files import records, write


@pytest.fixture
def source(tmp_path):
    """A file of 100 records."""
    return write(tmp_path / "source.jsonl", records(100))


@pytest.fixture
def folder(tmp_path):
    """A folder of three files of records."""
    for number in (1, 2, 10):
        lines = [f'{{"file":{number},"line":{line},"pad":"{"x" * 90}"}}\n' for line in range(30)]
        (tmp_path / f"part{number}.jsonl").write_text("".join(lines))
    return tmp_path
