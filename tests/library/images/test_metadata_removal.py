"""``images.Strip``: metadata goes, pixels and their encoding stay."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageOps
from PIL.PngImagePlugin import PngInfo

from dagster_dataops import data
from dagster_dataops.errors import FileError
from tests.each import each
from tests.library.media import animation, opened, picture, saved, stored

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
SECRET = b"SECRETPLACE"


def with_metadata(form: str, orientation: int = 1) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = SECRET.decode()
    exif.get_ifd(0x8825)[1] = "N"
    exif.get_ifd(0x8825)[2] = (47.0, 22.0, 33.0)
    xmp = b"<x:xmpmeta>" + SECRET + b"</x:xmpmeta>"
    options: dict[str, Any] = {"exif": exif, "icc_profile": PROFILE}
    if form == "PNG":
        options["pnginfo"] = PngInfo()
        options["pnginfo"].add_text("Author", SECRET.decode())
        options["pnginfo"].add_itxt("XML:com.adobe.xmp", xmp.decode())
    else:
        options["xmp"] = xmp
    if form == "JPEG":
        options["comment"] = SECRET
    return saved(picture(), form, **options)


def stripped(record: dict[str, Any], **options: Any) -> bytes:
    value = data.images.Strip(**options).forward(dict(record))["file"]
    return value.data if hasattr(value, "data") else Path(value).read_bytes()


@each("form", ["JPEG", "PNG", "WEBP"])
def test_metadata_goes_and_pixels_stay(form: str, tmp_path: Path) -> None:
    for orientation in (1, 6):
        record = stored(tmp_path, "a", with_metadata(form, orientation))
        assert SECRET in Path(record["file"]).read_bytes() or form == "PNG"
        left = stripped(record)
        found, before = Image.open(io.BytesIO(left)), opened(record)

        assert SECRET not in left
        assert not {"comment", "xmp", "XML:com.adobe.xmp", "Author"} & found.info.keys()
        assert set(found.getexif()) == ({0x0112} if orientation == 6 else set())
        assert np.array_equal(np.asarray(found), np.asarray(before))
        upright, expected = ImageOps.exif_transpose(found), ImageOps.exif_transpose(before)
        assert upright.size == expected.size
        assert found.info["icc_profile"] == PROFILE
        assert stripped(stored(tmp_path, "b", left)) == left


@each("form", ["JPEG", "PNG", "WEBP"])
def test_the_profile_goes_on_demand(form: str, tmp_path: Path) -> None:
    record = stored(tmp_path, "a", with_metadata(form))

    left = Image.open(io.BytesIO(stripped(record, keep_profile=False)))
    left.load()
    assert "icc_profile" not in left.info


@each(
    "content",
    [
        saved(picture(), "PNG"),
        saved(picture(), "JPEG"),
        saved(picture(), "WEBP"),
        saved(picture(), "JPEG", progressive=True),
        saved(picture(mode="L"), "JPEG", restart_marker_blocks=2),
        saved(picture().convert("CMYK"), "JPEG"),
        saved(picture(), "BMP"),
        animation("WEBP"),
        animation("PNG"),
    ],
)
def test_a_file_without_metadata_keeps_its_reference(content: bytes, tmp_path: Path) -> None:
    record = stored(tmp_path, "a", content)
    found = data.images.Strip().forward(dict(record))

    if found != record:  # nothing but a part for the density may have gone
        assert Image.open(io.BytesIO(found["file"].data)).info.keys() <= opened(record).info.keys()
        assert np.array_equal(
            np.asarray(Image.open(io.BytesIO(found["file"].data))), np.asarray(opened(record))
        )
    else:
        assert found == record


def test_what_follows_the_image_goes(tmp_path: Path) -> None:
    whole = saved(picture(), "JPEG")
    second = with_metadata("JPEG")
    both = saved(picture(), "MPO", save_all=True, append_images=[picture(seed=1)])

    assert stripped(stored(tmp_path, "a.jpg", whole + second)) == whole
    left = Image.open(io.BytesIO(stripped(stored(tmp_path, "b.jpg", both))))
    assert left.format == "JPEG"
    assert getattr(left, "n_frames", 1) == 1


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_damaged_exif_goes_whole(tmp_path: Path) -> None:
    exif = b"Exif\0\0MM\0*\0\0\0\x08\xff\xff" + SECRET
    record = stored(tmp_path, "a.jpg", saved(picture(), "JPEG", exif=exif))

    left = stripped(record)
    assert SECRET not in left


def test_formats_that_cannot_be_stripped_are_an_error(tmp_path: Path) -> None:
    record = stored(tmp_path, "a.gif", animation())

    with pytest.raises(FileError, match=r"a.gif: is GIF, from which .*images\.Convert"):
        data.images.Strip().forward(record)
    with pytest.raises(FileError, match="truncated"):
        data.images.Strip().forward(stored(tmp_path, "b.jpg", saved(picture(), "JPEG")[:-300]))
