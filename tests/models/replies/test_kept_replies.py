"""Tests of dagster_dataops.models.replies.kept_replies."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import LLMOperator, ModelClient, config, data_register, load_replies
from dagster_dataops.errors import ResultMissingError, RunStoppedError
from tests.models.running_server import RunningServer

RECORDS = [{"n": number} for number in range(4)]
STOPPED = [*RECORDS[:3], {"n": "3 [[fault:401*1]]"}]


@data_register("data.kept")
class Say(LLMOperator):
    prompt = "say {{ n }}"


@pytest.fixture(autouse=True)
def client(server: RunningServer, monkeypatch: pytest.MonkeyPatch, root: Path) -> RunningServer:
    monkeypatch.setitem(config.clients, "default", ModelClient(base_url=server.address))
    monkeypatch.setattr(config, "data_process_resume", True)
    return server


def say(**options: Any) -> Any:
    return Say(model="rule", _max_workers=1, **options)


def test_kept_replies_are_read_in_their_order(root: Path):
    say()(RECORDS)
    say(prompt="{{ n }} [[fault:wrong]]", response_format={"type": "object"})([{"n": 7}])

    first, *others = load_replies(root / "Say")
    assert (first.model, first.text, first.start) == ("rule", "echo: say 0", 0)
    assert first.seconds > 0
    assert first.reply["usage"]["completion_tokens"] > 0
    assert [one.text for one in others] == [
        *(f"echo: say {n}" for n in range(1, 4)),
        '{"unexpected": [1, null]}',
    ]


def test_a_line_that_was_cut_is_left_out_and_the_file_stays_as_it_is(root: Path):
    say()(RECORDS)
    file = root / "Say" / "replies" / "replies.jsonl"
    file.write_bytes(cut := file.read_bytes()[:-9])

    assert len(list(load_replies(root / "Say"))) == 3
    assert file.read_bytes() == cut


def test_a_folder_without_replies_is_an_error(tmp_path: Path):
    with pytest.raises(ResultMissingError, match="it has no replies"):
        load_replies(tmp_path)


def test_replies_that_are_not_kept_serve_a_later_attempt_and_go_with_the_checkpoints(
    root: Path, server: RunningServer
):
    with pytest.raises(RunStoppedError):
        say(keep_replies=False)(STOPPED)
    shutil.rmtree(root / "Say" / "checkpoints" / "1")  # the outcomes are lost, not the replies

    assert len(list(load_replies(root / "Say"))) == 3
    assert len(say(keep_replies=False)(STOPPED)) == 4
    assert server.stats()["answered"] == 4
    assert not (root / "Say" / "checkpoints").exists()
    with pytest.raises(ResultMissingError):
        load_replies(root / "Say")

    say(keep_replies=False, output_key="other")(STOPPED)
    assert server.stats()["answered"] == 8


def test_replies_kept_before_are_not_kept_longer_once_the_option_is_off(
    root: Path, server: RunningServer
):
    say()(RECORDS)
    say(keep_replies=False, output_key="other")(RECORDS)

    assert server.stats()["answered"] == 4  # paid before, used once more
    assert not list((root / "Say" / "replies").iterdir())


def test_an_unfinished_run_takes_its_replies_along_when_the_option_changes(
    root: Path, server: RunningServer
):
    with pytest.raises(RunStoppedError):
        say(keep_replies=False)(STOPPED)
    say(keep_replies=True)(STOPPED)

    assert server.stats()["answered"] == 4
    assert len(list(load_replies(root / "Say"))) == 4
