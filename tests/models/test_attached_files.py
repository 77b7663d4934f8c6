"""Tests of dagster_dataops.models.attached_files: requests with images, sounds and documents."""

import base64
import json
import pickle
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import LLMOperator, ModelClient, config, data
from dagster_dataops.errors import FileChangedError, FileError, OperatorOptionError
from dagster_dataops.files import FileReference
from tests.library.llm.scripted_model import ScriptedModel
from tests.models.running_server import RunningServer, running_server
from tests.small_files import png, wave

PDF = b"%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    for name, content in {"a.png": png(), "a.wav": wave(), "a.pdf": PDF}.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    with running_server() as started:
        monkeypatch.setitem(config.clients, "default", ModelClient(base_url=started.address))
        yield started


@pytest.fixture
def pillow() -> Any:
    return pytest.importorskip("PIL.Image", reason="needs the extra images")


def model() -> ScriptedModel:
    return ScriptedModel(lambda *_: "seen")


def content(asked: ScriptedModel, number: int = 0) -> Any:
    return asked.requests[number]["messages"][-1]["content"]


def error_rows(root: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in root.rglob("*_error.jsonl")
        for line in path.read_text().splitlines()
    ]


def test_files_stand_before_the_prompt_in_the_form_of_the_provider(files: Path) -> None:
    asked = model()
    operator = data.llm.Generate(
        prompt="{{ q }}", images="i", audio="s", files=["d", "e"], image_detail="low", client=asked
    )
    record = {
        "q": "What?",
        "i": f"{files}/a.png",
        "s": {"file": f"{files}/a.wav"},
        "d": [f"{files}/a.pdf"],
        "e": {"file_id": "file-7"},
    }

    assert operator([record])[0]["answer"] == "seen"

    image, sound, document, stored, text = content(asked)
    coded = base64.b64encode(png()).decode()
    address = f"data:image/png;base64,{coded}"
    assert image == {"type": "image_url", "image_url": {"url": address, "detail": "low"}}
    assert sound == {
        "type": "input_audio",
        "input_audio": {"data": base64.b64encode(wave()).decode(), "format": "wav"},
    }
    coded = f"data:application/pdf;base64,{base64.b64encode(PDF).decode()}"
    assert document == {"type": "file", "file": {"filename": "a.pdf", "file_data": coded}}
    assert stored == {"type": "file", "file": {"file_id": "file-7"}}
    assert text == {"type": "text", "text": "What?"}


def test_images_of_a_conversation_may_be_files_of_this_machine(files: Path) -> None:
    asked = model()
    address = "HTTPS://example.org/b.png"
    image = {"type": "image_url", "image_url": {"url": f"{files}/a.png", "detail": "high"}}
    other = {"type": "image_url", "image_url": {"url": address}}
    content_of_user = [{"type": "text", "text": "What?"}, image, other]

    (row,) = data.llm.Continue(client=asked)(
        [{"messages": [{"role": "user", "content": content_of_user}]}]
    )

    _, sent, passed = content(asked)
    assert sent["image_url"]["url"].startswith("data:image/png;base64,")
    assert sent["image_url"]["detail"] == "high"
    assert passed == other
    assert row["messages"][0]["content"] == content_of_user


def test_addresses_are_sent_as_they_are_on_request() -> None:
    asked = model()
    operator = data.llm.Generate(prompt="x", images="i", audio="s", send_files="url", client=asked)

    operator([{"i": "https://example.org/a.png", "s": "https://example.org/a.mp3"}])

    image, sound, _ = content(asked)
    assert image == {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    assert sound == {"type": "audio_url", "audio_url": {"url": "https://example.org/a.mp3"}}


def test_equal_content_is_paid_once_and_other_content_again(
    server: RunningServer, files: Path, root: Path
) -> None:
    (files / "same.png").write_bytes(png())
    rows = [{"i": f"{files}/a.png"}, {"i": f"{files}/same.png"}]
    operator = data.llm.Generate(prompt="What?", images="i")
    first = operator(rows)
    assert server.stats()["requests"] == 1

    (files / "a.png").write_bytes(png(color=b"\0\xff\0"))
    second = data.llm.Generate(prompt="What?", images="i", output_key="seen")(rows)

    assert server.stats()["requests"] == 2
    assert second[1]["seen"] == first[1]["answer"] != second[0]["seen"]


def test_a_told_digest_finds_the_stored_reply_without_the_file(
    server: RunningServer, files: Path
) -> None:
    digest = f"sha256:{sha256(png()).hexdigest()}"
    rows = [{"i": {"file": f"{files}/a.png", "digest": digest}}]
    first = data.llm.Generate(prompt="What?", images="i")(rows)
    (files / "a.png").unlink()

    again = data.llm.Generate(prompt="What?", images="i", output_key="seen")(rows)

    assert again[0]["seen"] == first[0]["answer"]
    assert server.stats()["requests"] == 1


def test_another_file_than_the_record_names_is_an_error(
    server: RunningServer, files: Path, root: Path
) -> None:
    reference = {"file": f"{files}/a.png", "digest": f"sha256:{'0' * 64}"}

    data.llm.Generate(prompt="What?", images="i")([{"i": reference}, {"i": f"{files}/a.png"}])

    (row,) = error_rows(root)
    assert row["exception"] == "FileChangedError"
    assert "digest" in row["message"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("no.png", "no.png"),
        ("empty.png", "empty"),
        ("a.pdf", "application/pdf"),
        ("wrong.png", "image/gif"),
        ("text.png", "is no image by its first bytes, but image/png by its name"),
        ("zeros.png", "is no image by its first bytes"),
        ("same.gif", "is image/png by its content, image/gif by its name"),
        ("large.png", "max_bytes"),
        ([], "empty list"),
        (None, "NoneType"),
        (7, "int"),
        ({"file_id": "file-7"}, "files="),
    ],
    ids=str,
)
def test_a_file_that_cannot_be_sent_is_an_error_of_its_record(
    files: Path, root: Path, value: Any, said: str
) -> None:
    (files / "empty.png").write_bytes(b"")
    (files / "wrong.png").write_bytes(b"GIF89a" + bytes(20))
    (files / "text.png").write_bytes(b"root:x:0:0:")
    (files / "zeros.png").write_bytes(bytes(100))
    (files / "same.gif").write_bytes((files / "a.png").read_bytes())
    (files / "large.png").write_bytes(png() + bytes(10_000))
    asked = model()
    named = f"{files}/{value}" if isinstance(value, str) else value

    operator = data.llm.Generate(prompt="x", images="i", max_bytes=5000, client=asked)
    rows = operator([{"i": named}, {"i": f"{files}/a.png"}])
    again = operator([{"i": named}, {"i": f"{files}/a.png"}])  # its reply is stored

    assert [row["answer"] for row in (*rows, *again)] == ["seen", "seen"]
    (row,) = error_rows(root)
    assert said in row["message"]
    assert len(asked.requests) == 1


def test_large_images_are_made_smaller_on_request(files: Path, pillow: Any) -> None:
    (files / "large.png").write_bytes(png(400, 100))
    asked = model()
    operator = data.llm.Generate(prompt="x", images="i", max_side=200, client=asked)

    operator([{"i": f"{files}/large.png"}, {"i": f"{files}/a.png"}])

    sent = [content(asked, number)[0]["image_url"]["url"].partition(",")[2] for number in (0, 1)]
    sizes = {pillow.open(BytesIO(base64.b64decode(one))).size for one in sent}
    assert sizes == {(200, 50), (8, 4)}


def test_the_options_of_images_are_for_the_images_of_a_conversation_too(
    files: Path, pillow: Any
) -> None:
    (files / "large.png").write_bytes(png(400, 100))
    asked = model()
    image = {"type": "image_url", "image_url": {"url": f"{files}/large.png"}}

    data.llm.Continue(client=asked, max_side=200, image_detail="low")(
        [{"messages": [{"role": "user", "content": [image]}]}]
    )

    sent = content(asked)[0]["image_url"]
    assert sent["detail"] == "low"
    data_of_image = base64.b64decode(sent["url"].partition(",")[2])
    assert pillow.open(BytesIO(data_of_image)).size == (200, 50)


@pytest.mark.parametrize("mode", ["1", "P", "I;16"])
def test_lines_of_a_smaller_image_stay_visible(files: Path, mode: str, pillow: Any) -> None:
    white = {"1": 1, "P": 255, "I;16": 65_535}[mode]
    page = pillow.new(mode, (400, 400), white)
    if mode == "P":
        page.putpalette([level for level in range(256) for _ in range(3)])
    for row in range(1, 400, 4):
        page.paste(0, (0, row, 400, row + 1))
    page.save(files / "page.png")
    asked = model()

    data.llm.Generate(prompt="x", images="i", max_side=100, client=asked)(
        [{"i": f"{files}/page.png"}]
    )

    sent = base64.b64decode(content(asked)[0]["image_url"]["url"].partition(",")[2])
    lowest, highest = pillow.open(BytesIO(sent)).convert("L").crop((10, 10, 90, 90)).getextrema()
    assert 150 < lowest <= highest < 230  # a quarter of the rows is black


@pytest.mark.parametrize("name", ["moving.gif", "pages.tif"])
def test_of_several_pictures_none_is_left_out(
    files: Path, root: Path, name: str, pillow: Any
) -> None:
    first, second = (pillow.new("L", (40, 40), level) for level in (0, 255))
    first.save(files / name, save_all=True, append_images=[second])

    data.llm.Generate(prompt="x", images="i", max_side=20, client=model())(
        [{"i": f"{files}/{name}"}, {"i": f"{files}/a.png"}]
    )

    (row,) = error_rows(root)
    assert "several pictures" in row["message"]


def test_an_image_of_a_format_that_runs_programs_is_not_decoded(
    files: Path, root: Path, pillow: Any
) -> None:
    postscript = BytesIO()
    pillow.new("L", (40, 40)).save(postscript, "EPS")
    size = len(postscript.getvalue())
    head = b"\xc5\xd0\xd3\xc6" + (32).to_bytes(4, "little") + size.to_bytes(4, "little")
    (files / "page.png").write_bytes(head.ljust(32, b"\0") + postscript.getvalue())

    data.llm.Generate(prompt="x", images="i", max_side=20, client=model())(
        [{"i": f"{files}/page.png"}, {"i": f"{files}/a.png"}]
    )

    (row,) = error_rows(root)
    assert "is no image by its first bytes" in row["message"]


def test_a_file_that_is_replaced_before_it_is_sent_again_is_not_sent(files: Path) -> None:
    def reply(*_: object) -> str:
        (files / "a.png").write_bytes(png(color=b"\0\0\xff"))
        return "no JSON"

    asked = ScriptedModel(reply)
    operator = data.llm.Generate(
        prompt="x", images="i", response_format={"type": "object"}, client=asked
    )
    with pytest.raises(FileChangedError):
        operator([{"i": f"{files}/a.png"}])

    assert len(asked.requests) == 1


def test_several_replies_need_the_digest_of_a_file_once(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    read = FileReference.read

    def counted(reference: FileReference, *limits: Any) -> bytes:
        reads.append(reference.file)
        return read(reference, *limits)

    monkeypatch.setattr(FileReference, "read", counted)
    operator = data.llm.Rewrite("Shorten.", count=3, images="i", client=model())

    operator([{"text": "x", "i": f"{files}/a.png"}])

    assert len(reads) <= 3  # of these, two because a request holds a file only until it is sent


def test_an_operator_of_a_user_attaches_files_to_its_own_messages(files: Path) -> None:
    class Compare(LLMOperator):
        def messages(self, record: dict[str, Any]) -> list[dict[str, Any]]:
            return [{"role": "user", "content": self.with_files("Which is larger?", record)}]

    asked = model()
    record = {"i": [f"{files}/a.png", f"{files}/a.png"]}
    from dagster_dataops import data_register

    operator = data_register("data.sight")(Compare)(images="i", client=asked)

    operator([record])

    assert [part["type"] for part in content(asked)] == ["image_url", "image_url", "text"]


@pytest.mark.parametrize(
    "options",
    [
        {"images": "i", "send_files": "link"},
        {"files": "d", "send_files": "url"},
        {"images": "i", "image_detail": "huge"},
        {"images": "i", "max_side": 0},
        {"images": "i", "max_side": 64, "send_files": "url"},
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OperatorOptionError):
        data.llm.Generate(prompt="x", **options)


def test_batches_have_the_content_of_files(server: RunningServer, files: Path, root: Path) -> None:
    rows = [{"i": f"{files}/a.png", "n": number} for number in range(3)]
    online = data.llm.Generate(prompt="{{ n }}", images="i")(rows)
    server.reset()

    operator = data.llm.Generate(
        prompt="{{ n }}", images="i", output_key="seen", delivery="batch", wait="step"
    )
    batched = operator([{**row, "n": row["n"]} for row in rows])

    assert [row["seen"] for row in batched] == [row["answer"] for row in online]


def test_errors_of_files_survive_pickling() -> None:
    error = FileError("a.png", "is empty", "leave the file out")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
