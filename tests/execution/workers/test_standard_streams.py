"""The output of workers."""

import os
from pathlib import Path


def test_workers_write_where_their_parent_writes_now(where, tmp_path: Path) -> None:
    where(1)
    kept = os.dup(1)
    with (tmp_path / "output.txt").open("w") as output:
        os.dup2(output.fileno(), 1)
        try:
            where(2)
        finally:
            os.dup2(kept, 1)
            os.close(kept)
    assert (tmp_path / "output.txt").read_text() == "said by a worker\n"
