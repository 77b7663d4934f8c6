"""Tests of dagster_dataops.library.llm.transcription."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from dagster_dataops import ModelClient, config, data
from dagster_dataops.errors import OperatorOptionError
from tests.models.running_server import RunningServer, running_server
from tests.small_files import png, wave


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    with running_server() as started:
        monkeypatch.setitem(config.clients, "default", ModelClient(base_url=started.address))
        yield started


@pytest.fixture
def sounds(tmp_path: Path) -> Path:
    for number, name in enumerate(["a.wav", "b.wav"]):
        (tmp_path / name).write_bytes(wave(80 + number))
    return tmp_path


def test_a_recording_is_sent_as_a_form(server: RunningServer, sounds: Path) -> None:
    operator = data.llm.Transcribe(language="en", params={"temperature": 0})

    (row,) = operator([{"file": f"{sounds}/a.wav"}])

    sent = json.loads(row["text"])
    sent.pop("digest")
    assert sent == {
        "name": "sound.wav",
        "type": "audio/wav",
        "model": "whisper-1",
        "language": "en",
        "temperature": "0",
        "response_format": "json",
    }


def test_a_recording_is_paid_once(server: RunningServer, sounds: Path) -> None:
    rows = [{"file": f"{sounds}/{name}.wav"} for name in ("a", "b", "a")]
    data.llm.Transcribe()(rows)
    data.llm.Transcribe(output_key="heard")(rows)

    assert server.stats()["requests"] == 2


def test_a_failing_server_is_asked_again_with_the_whole_file(
    server: RunningServer, sounds: Path
) -> None:
    operator = data.llm.Transcribe(params={"prompt": "[[fault:500*1]]"})

    (row,) = operator([{"file": f"{sounds}/a.wav"}])

    assert json.loads(row["text"])["digest"] == sha256(wave()).hexdigest()[:8]
    assert server.stats()["requests"] == 2


def test_silence_is_an_empty_text(server: RunningServer, sounds: Path) -> None:
    (row,) = data.llm.Transcribe(params={"prompt": "silence"})([{"file": f"{sounds}/a.wav"}])

    assert row["text"] == ""


@pytest.mark.usefixtures("server")
def test_an_image_and_several_recordings_are_errors_of_their_records(
    sounds: Path, root: Path
) -> None:
    (sounds / "a.png").write_bytes(png())
    image, one, other = (f"{sounds}/{name}" for name in ("a.png", "a.wav", "b.wav"))

    rows = data.llm.Transcribe()([{"file": image}, {"file": [one, other]}, {"file": [one]}])

    assert len(rows) == 1
    (path,) = root.rglob("*_error.jsonl")
    told = [json.loads(line)["message"] for line in path.read_text().splitlines()]
    assert "image/png" in told[0]
    assert "2 recordings" in told[1]


@pytest.mark.parametrize("params", [{"response_format": "srt"}, {"stream": True}], ids=str)
def test_replies_that_are_not_read_are_refused(params: dict[str, object]) -> None:
    with pytest.raises(OperatorOptionError, match="params"):
        data.llm.Transcribe(params=params)
