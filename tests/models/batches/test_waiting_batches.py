"""The file of the batches of a node, and their cancellation."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import LLMOperator, ModelClient, config, data_register
from dagster_dataops.errors import (
    NewerVersionError,
    OperatorOptionError,
    PathEscapeError,
    ResultMissingError,
    RunWaitingError,
    StorageError,
    UnreachableError,
)
from dagster_dataops.models.batches.batch_delivery import FOLDER, BatchState
from dagster_dataops.models.batches.cancellation import cancel_batches
from tests.command_line import main
from tests.models.running_server import RunningServer


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


RECORDS = [{"n": number} for number in range(6)]


@data_register("data.cancelled")
class Echo(LLMOperator):
    prompt = "say {{ n }}"


@pytest.fixture
def waiting(server: RunningServer, monkeypatch: pytest.MonkeyPatch, root: Path) -> Any:
    """Return an operator whose batch waits for the server."""
    server.reset(batches="in_progress")
    monkeypatch.setitem(config.clients, "default", ModelClient(base_url=server.address))
    monkeypatch.setattr(config, "data_process_resume", True)
    operator: Any = Echo(model="rule", delivery="batch")
    with pytest.raises(RunWaitingError):
        operator(RECORDS)
    return operator


def test_the_command_cancels_what_waits_and_a_later_run_uses_what_was_answered(
    waiting: Any, server: RunningServer, root: Path, capsys: pytest.CaptureFixture[str]
):
    command = ["batches", "cancel", "Echo", "--root", str(root), "--base-url", server.address]

    assert main(command) == 0
    assert capsys.readouterr().out == "cancelled batch-0\n"
    assert BatchState(root / "Echo").cancelled

    with pytest.raises(
        RunWaitingError, match="requests without a reply: 3"
    ):  # of those not answered
        waiting(RECORDS)
    assert not BatchState(root / "Echo").cancelled
    server.finish()
    assert [row["answer"] for row in waiting(RECORDS)] == [f"echo: say {n}" for n in range(6)]
    assert main(command) == 0
    assert capsys.readouterr().out == "no batch waits for the server\n"


def test_a_batch_that_has_ended_is_only_noted(waiting: Any, server: RunningServer, root: Path):
    server.finish()

    assert asyncio.run(cancel_batches(root / "Echo", ModelClient(base_url=server.address))) == [
        "batch-0"
    ]
    assert len(waiting(RECORDS)) == 6


def test_a_server_that_is_not_there_leaves_the_batches_as_they_are(waiting: Any, root: Path):
    client = ModelClient(base_url="http://127.0.0.1:9/v1", tries=1)

    with pytest.raises(UnreachableError):
        asyncio.run(cancel_batches(root / "Echo", client))
    assert not BatchState(root / "Echo").cancelled


def test_a_node_without_batches_is_an_error(tmp_path: Path):
    with pytest.raises(ResultMissingError, match="it has no batches"):
        asyncio.run(cancel_batches(tmp_path, ModelClient()))


def test_a_run_with_the_option_cancel_cancels_and_a_later_run_goes_on(
    waiting: Any, server: RunningServer, root: Path
):
    with pytest.raises(RunWaitingError, match="cancelled batch-0, because"):
        Echo(model="rule", delivery="batch", cancel=True)(RECORDS)
    assert BatchState(root / "Echo").cancelled

    with pytest.raises(RunWaitingError, match="requests without a reply: 3"):
        waiting(RECORDS)
    with pytest.raises(RunWaitingError, match="cancelled batch-1"):
        Echo(model="rule", delivery="batch", wait="step", cancel=True)(RECORDS)
    assert server.stats()["batches"] == 2


def test_the_option_cancel_is_for_batches():
    with pytest.raises(OperatorOptionError, match="needs delivery='batch'"):
        Echo(model="rule", cancel=True)
