"""Numbers of images: those of Pillow, and of the definitions."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps, ImageStat, PngImagePlugin

from dagster_dataops import data
from dagster_dataops.errors import FileError
from tests.each import each
from tests.library.media import animation, opened, picture, reason, saved, signals, stored

FORMS = {
    "a.jpg": ("JPEG", "RGB", {}),
    "b.png": ("PNG", "RGBA", {}),
    "c.webp": ("WEBP", "RGB", {}),
    "d.gif": ("GIF", "L", {}),
    "e.bmp": ("BMP", "RGB", {}),
    "f.tif": ("TIFF", "RGB", {"compression": "tiff_lzw"}),
    "g.jp2": ("JPEG2000", "RGB", {}),
    "h.avif": ("AVIF", "RGB", {}),
    "i.png": ("PNG", "L", {}),
}
ALL: dict[str, Any] = {
    "Size": {},
    "AspectRatio": {},
    "Brightness": {},
    "Sharpness": {},
    "Entropy": {},
}


def laplacian_variance(grey: Any) -> float:
    padded = np.pad(np.asarray(grey, float), 1, "reflect")
    middle = padded[1:-1, 1:-1]
    around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    return float((around - 4 * middle).var())


def expected(image: Any) -> dict[str, float]:
    grey = image.convert("L")
    return {
        "image_width": image.width,
        "image_height": image.height,
        "image_aspect_ratio": image.width / image.height,
        "image_brightness": ImageStat.Stat(grey).mean[0] / 255,
        "image_sharpness": laplacian_variance(grey),
        "image_entropy": grey.entropy(),
    }


@each("name", FORMS)
def test_the_numbers_are_those_of_pillow(name: str, tmp_path: Path) -> None:
    form, mode, options = FORMS[name]
    if form == "AVIF" and not pytest.importorskip("PIL.features").check("avif"):
        return
    record = stored(tmp_path, name, saved(picture(101, 67, mode=mode), form, **options))

    found: dict[str, Any] = {}
    for operator in ALL:
        found |= signals(getattr(data.images, operator)(mode="tag"), record)

    assert found == pytest.approx(expected(opened(record)), rel=1e-12)


@each("turned", range(1, 9))
def test_an_image_counts_upright(turned: int, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = turned
    exif[0x010F] = "Maker"
    for form, name in (("JPEG", "a.jpg"), ("PNG", "a.png"), ("WEBP", "a.webp"), ("TIFF", "a.tif")):
        record = stored(tmp_path, name, saved(picture(60, 40), form, exif=exif))
        upright = ImageOps.exif_transpose(opened(record))
        size = signals(data.images.Size(mode="tag"), record)
        assert (size["image_width"], size["image_height"]) == upright.size
        if form == "PNG" and turned == 1:
            continue
        new = data.images.Convert(format="png", output_key="new").forward(record)["new"]
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(new.data))), np.asarray(upright))


def test_an_orientation_in_xmp_counts(tmp_path: Path) -> None:
    texts = PngImagePlugin.PngInfo()
    texts.add_itxt("XML:com.adobe.xmp", "<tiff:Orientation>8</tiff:Orientation>")
    for name, form, options in (
        ("a.jpg", "JPEG", {"xmp": b'<x tiff:Orientation="6"/>'}),
        ("a.webp", "WEBP", {"xmp": b'<x tiff:Orientation="6"/>'}),
        ("a.png", "PNG", {"pnginfo": texts}),
    ):
        record = stored(tmp_path, name, saved(picture(60, 40), form, **options))
        size = signals(data.images.Size(mode="tag"), record)
        assert (size["image_width"], size["image_height"]) == (40, 60)


@pytest.mark.parametrize(
    ("operator", "options", "said"),
    [
        ("Size", {"min_width": 97}, "low_image_width"),
        ("Size", {"max_width": 95}, "high_image_width"),
        ("Size", {"min_height": 65}, "low_image_height"),
        ("Size", {"max_height": 63}, "high_image_height"),
        ("Size", {"min_width": 96, "max_width": 96, "min_height": 64, "max_height": 64}, None),
        ("AspectRatio", {"max_ratio": 1.4}, "high_image_aspect_ratio"),
        ("AspectRatio", {"min_ratio": 1.6}, "low_image_aspect_ratio"),
        ("AspectRatio", {}, None),
        ("Brightness", {"min_brightness": 0.99, "max_brightness": None}, "low_image_brightness"),
        ("Brightness", {"max_brightness": 0.01}, "high_image_brightness"),
        ("Sharpness", {"min_sharpness": 1e6}, "low_image_sharpness"),
        ("Sharpness", {"min_sharpness": None, "max_sharpness": 0.5}, "high_image_sharpness"),
        ("Entropy", {"min_entropy": 8}, "low_image_entropy"),
        ("Entropy", {"max_entropy": 1}, "high_image_entropy"),
        ("Entropy", {}, None),
    ],
)
def test_limits_have_reasons(operator: str, options: Any, said: str | None, tmp_path: Path) -> None:
    record = stored(tmp_path, "a.png", saved(picture(), "PNG"))

    assert reason(getattr(data.images, operator)(**options), record) == said


def test_one_colour_has_no_detail(tmp_path: Path) -> None:
    record = stored(tmp_path, "a.png", saved(Image.new("RGB", (5, 1), "white"), "PNG"))

    assert signals(data.images.Sharpness(mode="tag"), record) == {"image_sharpness": 0}
    assert signals(data.images.Entropy(mode="tag"), record) == {"image_entropy": 0}
    assert signals(data.images.Brightness(mode="tag"), record) == {"image_brightness": 1}


def test_16_bits_are_divided_and_not_cut_off(tmp_path: Path) -> None:
    deep = Image.fromarray(np.array([[0, 256, 32768, 65535]], np.uint16))
    record = stored(tmp_path, "a.png", saved(deep, "PNG"))

    (found,) = signals(data.images.Brightness(mode="tag"), record).values()
    assert found == pytest.approx((0 + 1 + 128 + 255) / 4 / 255)


def test_signals_that_a_record_has_are_used_without_its_file() -> None:
    record = {"file": "none.png", "stats": {"image_brightness": 0.5}}

    assert data.images.Brightness(reuse_stats=True).forward(record) is record
    with pytest.raises(FileError, match="none.png: cannot be read"):
        data.images.Brightness().forward(record)


def test_an_animation_is_an_error_where_one_picture_is_needed(tmp_path: Path) -> None:
    record = stored(tmp_path, "a.gif", animation())

    assert reason(data.images.Size(min_width=1), record) is None
    assert reason(data.images.Brightness(animated="first"), record) is None
    with pytest.raises(FileError, match=r"a\.gif: has 3 pictures, where one is needed; take"):
        data.images.Brightness().forward(record)


def test_a_second_picture_of_a_camera_is_no_animation(tmp_path: Path) -> None:
    both = saved(picture(), "MPO", save_all=True, append_images=[picture(seed=1)])
    record = stored(tmp_path, "a.jpg", both)

    found = signals(data.images.Check(mode="tag"), record)
    assert (found["image_format"], found["image_frames"]) == ("JPEG", 1)
    assert reason(data.images.Entropy(), record) is None
