"""Tests of the file of the batches of a node."""

from pathlib import Path

import orjson
import pytest

from dagster_dataops.errors import NewerVersionError, PathEscapeError, StorageError
from dagster_dataops.models.batches.batch_delivery import FOLDER, BatchState


@pytest.mark.parametrize("digest", ["../../precious", "/etc/passwd", ""])
def test_a_batch_whose_file_leads_out_of_its_folder_is_refused(tmp_path: Path, digest: str) -> None:
    (tmp_path / FOLDER).mkdir()
    state = {"parts": {digest: {"id": None, "mark": "m", "requests": 1, "collected": False}}}
    (tmp_path / FOLDER / "state.json").write_bytes(orjson.dumps(state))
    with pytest.raises(PathEscapeError, match=r"state\.json"):
        BatchState(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"5", b'{"parts": []}', b'{"parts": {"a": 5}}'),
        *(b'{"parts": {"a": {}}}', b'{"format": 1, "parts": 2}'),
        *(b'{"rounds": "1"}', b'{"failed": null}'),
    ],
)
def test_a_state_of_another_form_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    """Its batches may be paid for."""
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "state.json").write_bytes(content)
    with pytest.raises(StorageError, match=r"state\.json: .* it is damaged; delete the file"):
        BatchState(tmp_path)
    assert (tmp_path / FOLDER / "state.json").read_bytes() == content


@pytest.mark.parametrize("content", [b'{"format": 2, "parts": {}}', b'{"format": 2, "x": 3}'])
def test_a_state_of_a_newer_version_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FOLDER).mkdir()
    path = tmp_path / FOLDER / "state.json"
    path.write_bytes(content)
    with pytest.raises(NewerVersionError, match=r"state\.json has format 2, .* reads 1\."):
        BatchState(tmp_path)
    assert path.read_bytes() == content


def test_fields_of_a_later_version_are_kept(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    path = tmp_path / FOLDER / "state.json"
    path.write_bytes(orjson.dumps({"rounds": 2, "colour": {"a": 1}}))
    state = BatchState(tmp_path)
    state.intend({"a" * 32: 3}, "http://h")
    assert BatchState(tmp_path).rounds == 3
    assert orjson.loads(path.read_bytes())["colour"] == {"a": 1}


def test_a_saved_state_is_read_again(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    state = BatchState(tmp_path)
    state.intend({"a" * 32: 3}, "http://h")
    assert vars(BatchState(tmp_path)) == vars(state)
