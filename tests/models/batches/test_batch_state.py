"""Tests of the file of the batches of a node."""

from pathlib import Path

import orjson
import pytest

from dagster_dataops.errors import PathEscapeError
from dagster_dataops.models.batches.batch_delivery import FOLDER, BatchState


@pytest.mark.parametrize("digest", ["../../precious", "/etc/passwd", ""])
def test_a_batch_whose_file_leads_out_of_its_folder_is_refused(tmp_path: Path, digest: str) -> None:
    (tmp_path / FOLDER).mkdir()
    state = {"parts": {digest: {"id": None, "mark": "m", "requests": 1, "collected": False}}}
    (tmp_path / FOLDER / "state.json").write_bytes(orjson.dumps(state))
    with pytest.raises(PathEscapeError, match=r"state\.json"):
        BatchState(tmp_path)
