"""``images.Check``, and files that no operator can use."""

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, FileError
from tests.each import each
from tests.library.media import animation, opened, picture, reason, saved, signals, stored


def with_exif(exif: bytes) -> bytes:
    return saved(picture(), "JPEG", exif=b"Exif\0\0" + exif)


def huge_png() -> bytes:
    """Return a PNG file of some bytes whose head tells 50,000 x 50,000 pixels."""
    head = struct.pack(">LLBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b""))
    chunks = (
        len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)
        for kind, body in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def huge_second_picture() -> bytes:
    """Return an animation whose second picture tells 65,535 x 65,535 pixels."""
    whole = bytearray(animation())
    at = whole.rindex(b"\x2c\0\0\0\0\x60\0\x40\0")
    whole[at + 5 : at + 9] = b"\xff" * 4
    return bytes(whole)


def zipped() -> bytes:
    import zipfile

    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("a.png", saved(picture(), "PNG"))
    return written.getvalue()


JPEG, PNG = saved(picture(), "JPEG"), saved(picture(), "PNG")
NOT_UPRIGHT = struct.pack("<2sHLHHHLHHL", b"II", 42, 8, 1, 274, 3, 1, 4660, 0, 0)
BAD: dict[str, tuple[str, bytes | None, str]] = {
    "missing": ("a.png", None, "No such file"),
    "empty": ("a.png", b"", "is empty"),
    "truncated JPEG": ("a.jpg", JPEG[: len(JPEG) // 2], "truncated"),
    "truncated PNG": ("a.png", PNG[: len(PNG) // 2], "truncated|broken"),
    "the head alone": ("a.png", PNG[:20], "cannot be read"),
    "half of the head": ("a.gif", b"GIF89a\1", "begins as image/gif, and its head is damaged"),
    "HEIC": ("a.heic", b"\0\0\0\x18ftypheic" + bytes(500), "is image/heic, and files of the form"),
    "Photoshop": ("a.psd", b"8BPS" + bytes(500), "is image/vnd.adobe.photoshop, and files of"),
    "SVG": ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is image/svg.xml, and files"),
    "JPEG named PNG": ("a.png", JPEG, "is image/jpeg by its content, image/png by its name"),
    "page named JPEG": ("a.jpg", b"<!doctype html><title>404</title>", "is text/html by its"),
    "text": ("a", b"no image at all", "it is no image of the formats"),
    "archive": ("a", zipped(), "is application/zip, no image file"),
    "postscript": ("a", b"%!PS-Adobe-3.0 EPSF-3.0\n", "is application/postscript, no image"),
    "huge": ("a.png", huge_png(), "2500000000 pixels.* limit of 178956970 pixels; replace"),
    "damaged EXIF": ("a.jpg", with_exif(b"MM\0*\0\0\0\x08\xff\xff"), "EXIF"),
    "no order in EXIF": ("a.jpg", with_exif(b"XX\0*\0\0\0\x08\0\0"), "EXIF"),
    "unknown orientation": ("a.jpg", with_exif(NOT_UPRIGHT), "orientation 4660"),
}
OPERATORS: dict[str, Callable[[], Any]] = {
    "Brightness": data.images.Brightness,
    "Check": data.images.Check,
    "Convert": lambda: data.images.Convert(channels="L"),
    "Embed": lambda: data.images.Embed(lambda images: [[1.0] for _ in images]),
    "PerceptualHash": data.images.PerceptualHash,
    "Resize": lambda: data.images.Resize(width=8),
}


@each("case", [(name, bad) for name in OPERATORS for bad in BAD])
def test_a_bad_file_is_an_error_with_path_and_reason(case: Any, tmp_path: Path) -> None:
    operator, (name, content, said) = OPERATORS[case[0]](), BAD[case[1]]
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    call = getattr(operator, "forward_batch", None)

    with pytest.raises(FileError, match=said) as raised:
        call([{"file": str(path)}]) if call else operator.forward({"file": str(path)})
    assert str(raised.value).startswith(f"{path}: ")
    path.unlink(missing_ok=True)


@each("case", [("a.png", PNG[:-12]), ("a.gif", saved(picture(), "GIF")[:-1])])
def test_pictures_without_the_end_of_their_file_are_no_whole_images(
    case: tuple[str, bytes], tmp_path: Path
) -> None:
    record = stored(tmp_path, *case)
    with pytest.raises(FileError, match="cannot be decoded: it is truncated: its last"):
        data.images.Check().forward(record)
    assert reason(data.images.Check(on_error="drop"), record) == "broken"


@pytest.mark.parametrize("value", [None, 7, [], {}, {"file": ""}, {"file": 1}])
def test_what_names_no_file_is_an_error_with_its_column(value: object) -> None:
    with pytest.raises(FileError, match="column 'picture'"):
        data.images.Size(input_key="picture").forward({"picture": value})


def test_a_missing_column_of_files_names_the_columns_that_are_there() -> None:
    with pytest.raises(FileError, match="column 'file': is missing or null; there is 'fil', 'id'"):
        data.images.Size().forward({"fil": "a.png", "id": 1})
    with pytest.raises(FileError, match="column 'file': is null; "):
        data.images.Size().forward({"file": None, "id": 1})


def test_the_size_is_checked_before_pixels_are_decoded(tmp_path: Path) -> None:
    record = stored(tmp_path, "a.png", saved(picture(96, 64), "PNG"))

    assert reason(data.images.Brightness(max_pixels=96 * 64), record) is None
    with pytest.raises(FileError, match="has 96 x 64 pixels, more than max_pixels=6,143; raise"):
        data.images.Brightness(max_pixels=96 * 64 - 1).forward(dict(record))
    with pytest.raises(FileError, match="more than max_bytes=100 bytes"):
        data.images.Brightness(max_bytes=100).forward(dict(record))


def test_a_bad_record_fails_alone_and_the_others_go_on(tmp_path: Path) -> None:
    good = stored(tmp_path, "a.png", PNG)
    bad = stored(tmp_path, "b.png", PNG[:60])
    folder = tmp_path / "results"
    operator = data.images.Score(
        lambda images: [one.width for one in images], _batch_size=3, _concurrency_mode="single"
    ).set_output(str(folder))

    operator([good, bad, good])
    lines = next(folder.glob("*.jsonl")).read_text().splitlines()
    assert [line.count('"score":96') for line in lines] == [1, 1]


# ------------------------------------------------------------ the filter


def test_signals_tell_what_the_file_is(tmp_path: Path) -> None:
    record = stored(tmp_path, "a.gif", animation())

    assert signals(data.images.Check(mode="tag"), record) == {
        "image_format": "GIF",
        "image_mode": opened(record).mode,
        "image_width": 96,
        "image_height": 64,
        "image_frames": 3,
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, None),
        ({"formats": ["PNG", "JPEG"]}, "format"),
        ({"formats": ["GIF"]}, None),
        ({"modes": ["L"]}, "mode"),
        ({"allow_animated": False}, "animated"),
    ],
)
def test_formats_modes_and_animations_have_reasons(
    options: Any, said: str | None, tmp_path: Path
) -> None:
    record = stored(tmp_path, "a.gif", animation())

    assert reason(data.images.Check(**options), record) == said


def test_what_cannot_be_decoded_is_dropped_on_demand(tmp_path: Path) -> None:
    operator = data.images.Check(on_error="drop")

    assert reason(operator, stored(tmp_path, "a.jpg", JPEG[:-100])) == "broken"
    assert reason(operator, stored(tmp_path, "b.jpg", PNG)) == "broken"
    assert reason(operator, stored(tmp_path, "c.jpg", JPEG)) is None
    with pytest.raises(FileError, match="No such file"):
        operator.forward({"file": str(tmp_path / "none.jpg")})


def test_all_pictures_are_decoded_within_the_limit(tmp_path: Path) -> None:
    whole = animation("WEBP", 4)
    pixels = 4 * 96 * 64

    assert reason(data.images.Check(max_pixels=pixels), stored(tmp_path, "a.webp", whole)) is None
    with pytest.raises(FileError, match="in its pictures"):
        data.images.Check(max_pixels=pixels - 1).forward(stored(tmp_path, "b.webp", whole))
    cut = animation("GIF", 4)[:-200]
    with pytest.raises(FileError):
        data.images.Check().forward(stored(tmp_path, "c.gif", cut))
    with pytest.raises(FileError, match="d.gif: .* pixels"):
        data.images.Check().forward(stored(tmp_path, "d.gif", huge_second_picture()))


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(DefinitionError, match="formats is 'JPG'; use one of 'JPEG'"):
        data.images.Check(formats=["JPG"])
