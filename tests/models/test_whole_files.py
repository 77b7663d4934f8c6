"""Files that are cut off or damaged are not sent to models: an error of their record."""

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import ModelClient, config, data
from tests.library.llm.scripted_model import ScriptedModel
from tests.library.media import animation, picture, saved, sound, speech
from tests.models.running_server import running_server

PDF = b"%PDF-1.4\n1 0 obj<<>>endobj\nxref\n0 1\ntrailer<<>>\nstartxref\n27\n%%EOF\n"


def archive() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        file.writestr("word/document.xml", "<w:document/>" * 50)
    return written.getvalue()


def adts(frames: int = 21) -> bytes:
    """Return the heads of an AAC file, with content of zeros."""
    return (b"\xff\xf1\x50\x80\x0d\x7f\xfc" + bytes(100)) * frames


def without_a_count(mp3: bytes) -> bytes:
    """Return an MP3 file without its first frame, which tells the number of the others."""
    return mp3[mp3.index(mp3[:2], 2) :]


MP3, FLAC = sound(speech(1), form="MP3"), sound(speech(1), form="FLAC")
SOUNDS = {
    "WAV": sound(speech(1)),
    "AIFF": sound(speech(1), form="AIFF"),
    "FLAC": FLAC,
    "FLAC with a tag behind": FLAC + b"TAG" + bytes(125),
    "Vorbis": sound(speech(1), form="OGG"),
    "Opus": sound(speech(1), form="OGG", subtype="OPUS"),
    "MP3": MP3,
    "MP3 with tags": b"ID3\4\0\0\0\0\1\0" + bytes(128) + MP3 + b"TAG" + bytes(125),
    "MP3 without a count": without_a_count(MP3),
    "AAC": adts(),
}
IMAGES = {
    "PNG": saved(picture(), "PNG"),
    "JPEG": saved(picture(), "JPEG"),
    "progressive JPEG": saved(picture(), "JPEG", progressive=True),
    "JPEG with bytes behind": saved(picture(), "JPEG") + b"more",
    "GIF": saved(picture(), "GIF"),
    "animated GIF": animation(),
    "WebP": saved(picture(), "WEBP"),
    "AVIF": saved(picture(), "AVIF"),
}
FILES = {
    "PDF": PDF,
    "PDF with bytes behind": PDF + b"\r\n" + bytes(5000),
    "DOCX": archive(),
    "text": b"no structure",
}
KINDS: dict[str, dict[str, bytes]] = {"images": IMAGES, "audio": SOUNDS, "files": FILES}


CUTS: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda content: content[: len(content) // 2],
    "without the last byte": lambda content: content[:-1],
    "without 40 bytes": lambda content: content[:-40],
}
NOT_NEEDED = {  # what is cut off, or no format that tells its end
    "text": set(CUTS),
    "PDF with bytes behind": set(CUTS),
    "PDF": {"without the last byte"},
    "JPEG with bytes behind": {"without the last byte"},
    "FLAC with a tag behind": {"without the last byte", "without 40 bytes"},
    "MP3 with tags": {"without the last byte", "without 40 bytes"},
}


def refused(option: str, files: dict[str, bytes], folder: Path, root: Path) -> dict[str, str]:
    """Send files to a model, each in a request; return the messages of those that were not sent."""
    records = []
    for number, (name, content) in enumerate(files.items()):
        path = folder / f"file{number}"
        path.write_bytes(content)
        records.append({"name": name, "f": str(path)})
    asked = ScriptedModel(lambda *_: "seen")
    options: dict[str, Any] = {option: "f"}
    sent = data.llm.Generate(prompt="{{ name }}", client=asked, _stop_after_failures=0, **options)(
        records
    )
    rows = [
        json.loads(line)
        for path in root.rglob("*_error.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert len(asked.requests) == len(sent) == len(files) - len(rows)
    for row in rows:
        assert row["exception"] == "FileError"
        assert row["message"].startswith(f"{row['input']['f']}: ")
    return {row["input"]["name"]: row["message"].partition(": ")[2] for row in rows}


@pytest.mark.parametrize("option", KINDS)
def test_whole_files_are_sent(option: str, tmp_path: Path, root: Path) -> None:
    assert refused(option, KINDS[option], tmp_path, root) == {}


@pytest.mark.parametrize("option", KINDS)
def test_files_that_are_cut_off_are_not_sent(option: str, tmp_path: Path, root: Path) -> None:
    files = {
        f"{name}, {cut}": shorten(content)
        for name, content in KINDS[option].items()
        for cut, shorten in CUTS.items()
        if cut not in NOT_NEEDED.get(name, ())
    }
    found = refused(option, files, tmp_path, root)
    assert found.keys() == files.keys()
    for message in found.values():
        assert message.startswith(("is not sent: it is truncated", "is not sent: it is damaged"))
        assert "; mend the file, or leave it out" in message


def test_what_cannot_be_known_is_sent(tmp_path: Path, root: Path) -> None:
    files = {"text": b"no struct", "bitmap": saved(picture(), "BMP")[:-9]}
    assert refused("files", files, tmp_path, root) == {}


def test_checksums_find_damage_in_the_middle(tmp_path: Path, root: Path) -> None:
    files = {}
    for name in ("Vorbis", "Opus", "PNG"):
        content = bytearray({**SOUNDS, **IMAGES}[name])
        content[len(content) // 2] ^= 1
        files[name] = bytes(content)
    found = refused("files", files, tmp_path, root)
    assert found.keys() == files.keys()
    assert all("it is damaged: " in message for message in found.values())


def test_a_missing_page_or_frame_is_found(tmp_path: Path, root: Path) -> None:
    ogg, flac = sound(speech(20), form="OGG"), bytearray(FLAC)
    starts = [match.start() for match in re.finditer(b"OggS", ogg)]
    flac[flac.index(b"\xff\xf8", 100) + 2] ^= 1  # in the head of a frame
    files = {"Ogg": ogg[: starts[3]] + ogg[starts[4] :], "FLAC": bytes(flac)}
    found = refused("audio", files, tmp_path, root)
    assert "pages are missing" in found["Ogg"]
    assert "16,000 samples are declared" in found["FLAC"]


def test_transcribe_sends_no_sound_that_is_cut_off(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.mp3"
    path.write_bytes(MP3[:-100])
    with running_server() as server:
        monkeypatch.setitem(config.clients, "default", ModelClient(base_url=server.address))
        assert data.llm.Transcribe(_stop_after_failures=0)([{"file": str(path)}]) == []
        assert server.stats()["requests"] == 0
    (row,) = map(json.loads, next(root.rglob("*_error.jsonl")).read_text().splitlines())
    assert row["message"].startswith(f"{path}: is not sent: it is truncated")
