"""Images that operators make: the pixels of Pillow, and the same bytes always."""

import io
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, FileError, OperatorOptionError
from tests.each import each
from tests.library.media import animation, opened, picture, saved, stored


def new(operator: Any, record: dict[str, Any]) -> Any:
    return Image.open(io.BytesIO(operator.forward(dict(record))["file"].data))


def same(one: Any, other: Any) -> bool:
    return one.mode == other.mode and np.array_equal(np.asarray(one), np.asarray(other))


@each(
    "case",
    [
        ({"width": 48}, lambda one: one.resize((48, 32), Image.Resampling.LANCZOS)),
        ({"height": 16}, lambda one: one.resize((24, 16), Image.Resampling.LANCZOS)),
        ({"width": 40, "height": 40}, lambda one: ImageOps.contain(one, (40, 40), 1)),
        ({"width": 90, "height": 20}, lambda one: ImageOps.contain(one, (90, 20), 1)),
        (
            {"width": 40, "height": 40, "fit": "cover"},
            lambda one: ImageOps.fit(one, (40, 40), Image.Resampling.LANCZOS),
        ),
        (
            {"width": 40, "height": 30, "fit": "stretch", "resample": "bilinear"},
            lambda one: one.resize((40, 30), Image.Resampling.BILINEAR),
        ),
        (
            {"width": 200, "allow_upscaling": True},
            lambda one: one.resize((200, 133), Image.Resampling.LANCZOS),
        ),
    ],
)
def test_pixels_are_resized_as_by_pillow(case: Any, tmp_path: Path) -> None:
    options, by_pillow = case
    for mode in ("RGB", "L", "RGBA"):
        record = stored(tmp_path, "a.png", saved(picture(mode=mode), "PNG"))
        assert same(new(data.images.Resize(**options), record), by_pillow(opened(record)))


@pytest.mark.parametrize(
    "options",
    [{"width": 96}, {"width": 300}, {"width": 96, "height": 64}, {"width": 300, "height": 300}],
)
def test_an_image_that_fits_keeps_its_file(options: Any, tmp_path: Path) -> None:
    record = stored(tmp_path, "a.jpg", saved(picture(), "JPEG"))

    assert data.images.Resize(**options).forward(dict(record)) == record
    again = data.images.Resize(**options, output_key="small").forward(dict(record))
    assert again == {**record, "small": record["file"]}
    assert new(data.images.Resize(**options, format="png"), record).format == "PNG"


FITTING = {
    "Resize": lambda **options: data.images.Resize(width=300, **options),
    "Convert": lambda **options: data.images.Convert(format="png", **options),
}


@each("name", FITTING)
def test_a_damaged_image_that_fits_is_an_error(name: str, tmp_path: Path) -> None:
    whole = saved(picture(), "PNG")
    record = stored(tmp_path, "a.png", whole[: len(whole) // 2])

    with pytest.raises(FileError, match=r"a\.png: cannot be decoded: image file is truncated"):
        FITTING[name]().forward(record)


@each("name", FITTING)
def test_of_an_animation_that_fits_the_first_picture_is_taken_or_none(
    name: str, tmp_path: Path
) -> None:
    record = stored(tmp_path, "a.png", animation("PNG"))

    with pytest.raises(FileError, match=r"a\.png: has 3 pictures, where one is needed"):
        FITTING[name]().forward(dict(record))
    made = new(FITTING[name](animated="first"), record)
    assert getattr(made, "n_frames", 1) == 1
    assert same(made, picture(seed=0))


def test_palettes_and_single_bits_are_resized_by_their_colours(tmp_path: Path) -> None:
    colours = picture(96, 64).quantize(16)
    bits = picture(96, 64, mode="L").convert("1")

    for image, mode in ((colours, "RGB"), (bits, "L")):
        record = stored(tmp_path, "a.png", saved(image, "PNG"))
        expected = opened(record).convert(mode).resize((48, 32), Image.Resampling.LANCZOS)
        assert same(new(data.images.Resize(width=48), record), expected)


@each("form", ["jpeg", "png", "webp"])
def test_the_same_pixels_have_the_same_bytes(form: str, tmp_path: Path) -> None:
    record = stored(tmp_path, "a.png", saved(picture(mode="RGBA"), "PNG"))
    operator = data.images.Resize(width=40, format=form)
    made = operator.forward(dict(record))["file"]

    assert made.media_type == f"image/{form}"
    assert made == operator.forward(dict(record))["file"]
    written = io.BytesIO()
    settings = {
        "jpeg": {"quality": 90, "subsampling": "4:2:0"},
        "png": {"compress_level": 6},
        "webp": {"quality": 90, "method": 4},
    }
    pixels = opened(record).resize((40, 27), Image.Resampling.LANCZOS)
    if form == "jpeg":
        white = Image.new("RGB", pixels.size, "white")
        white.paste(pixels.convert("RGB"), mask=pixels.getchannel("A"))
        pixels = white
    pixels.save(written, form, **settings[form])
    assert sha256(made.data).digest() == sha256(written.getvalue()).digest()


@each("mode", ["single", "thread", "process"])
def test_every_mode_stores_the_same_files(mode: str, tmp_path: Path) -> None:
    names = [stored(tmp_path, f"{n}.png", saved(picture(seed=n), "PNG")) for n in range(4)]
    operator = data.images.Resize(width=20, format="jpeg", _concurrency_mode=mode, _max_workers=2)
    made = operator.set_output(str(tmp_path / mode))(names)
    single = data.images.Resize(width=20, format="jpeg", _concurrency_mode="single")
    expected = single.set_output(str(tmp_path / "expected"))(names)

    assert Path(made).read_bytes() == Path(expected).read_bytes()
    assert Path(made).read_text().count('"digest":"sha256:') == 4


@pytest.mark.parametrize(
    ("options", "mode", "form"),
    [
        ({"channels": "RGB"}, "RGB", "PNG"),
        ({"channels": "L"}, "L", "PNG"),
        ({"channels": "RGB", "format": "jpeg"}, "RGB", "JPEG"),
        ({"format": "webp"}, "RGBA", "WEBP"),
        ({"format": "jpeg"}, "RGB", "JPEG"),
    ],
)
def test_formats_and_channels_are_converted(
    options: Any, mode: str, form: str, tmp_path: Path
) -> None:
    record = stored(tmp_path, "a.png", saved(picture(mode="RGBA"), "PNG"))

    made = new(data.images.Convert(**options), record)
    assert (made.mode, made.format, made.size) == (mode, form, (96, 64))


def test_transparent_pixels_have_the_background(tmp_path: Path) -> None:
    clear = Image.new("RGBA", (8, 8), (10, 20, 30, 0))
    record = stored(tmp_path, "a.png", saved(clear, "PNG"))

    made = new(data.images.Convert(channels="RGB", background="#336699"), record)
    assert made.getpixel((3, 3)) == (0x33, 0x66, 0x99)
    with pytest.raises(DefinitionError, match="background is 'blau', which is no colour"):
        data.images.Convert(background="blau")


def test_new_files_have_the_profile_and_no_other_metadata(tmp_path: Path) -> None:
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    exif = Image.Exif()
    exif[0x010F] = "Maker"
    exif[0x0112] = 6
    whole = saved(picture(), "JPEG", exif=exif, icc_profile=profile, comment=b"a comment")
    record = stored(tmp_path, "a.jpg", whole)

    for operator in (data.images.Resize(width=20), data.images.Crop(box=(0, 0, 9, 9))):
        made = new(operator, record)
        assert made.info["icc_profile"] == profile
        assert not {"exif", "comment", "xmp"} & made.info.keys()
    grey = new(data.images.Convert(channels="L"), record)
    assert "icc_profile" not in grey.info


@pytest.mark.parametrize("box", [[0, 0, 96, 64], (5, 6, 30, 20)])
def test_boxes_are_cut_out(box: Any, tmp_path: Path) -> None:
    record = {**stored(tmp_path, "a.png", saved(picture(), "PNG")), "box": box}
    expected = opened(record).crop(tuple(box))

    assert same(new(data.images.Crop(), record), expected)
    assert same(new(data.images.Crop(box=box), record), expected)


@pytest.mark.parametrize(
    ("box", "said"),
    [
        ([0, 0, 97, 64], "is not inside of its 96 x 64 pixels"),
        ([-1, 0, 9, 9], "is not inside"),
        ([5, 5, 5, 9], "has no pixels"),
        ([0, 0, 9], "is no list of left, top"),
        ([0, 0, 9.5, 9], "numbers that are not whole"),
        (None, "is no list"),
        ("0123", "is no list"),
    ],
)
def test_a_box_outside_of_the_image_is_an_error(box: Any, said: str, tmp_path: Path) -> None:
    record = {**stored(tmp_path, "a.png", saved(picture(), "PNG")), "box": box}

    with pytest.raises(FileError, match=f"a.png: its box .* {said}"):
        data.images.Crop().forward(record)


def test_options_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="give a width, a height, or both"):
        data.images.Resize()
    with pytest.raises(DefinitionError, match="which has no pixels"):
        data.images.Crop(box=[9, 9, 1, 1])
    with pytest.raises(OperatorOptionError, match="'format' must be"):
        data.images.Convert(format="gif")
    record = stored(tmp_path, "a.gif", animation())
    with pytest.raises(FileError, match="has 3 pictures"):
        data.images.Resize(width=9).forward(record)
