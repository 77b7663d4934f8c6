"""Hashes of images: those of imagehash."""

from pathlib import Path

import imagehash
import numpy as np
import pytest
from PIL import Image, ImageOps

from dagster_dataops import data
from tests.each import each
from tests.library.media import opened, picture, saved, stored

THEIRS = {"phash": imagehash.phash, "dhash": imagehash.dhash, "ahash": imagehash.average_hash}


@pytest.mark.slow
@each("by", THEIRS)
def test_hashes_are_those_of_imagehash(by: str, tmp_path: Path) -> None:
    operator = data.images.PerceptualHash(by=by)

    for seed in range(24):
        mode = ("RGB", "L", "RGBA")[seed % 3]
        image = picture(40 + 13 * seed, 150 - seed, seed, mode)
        record = stored(tmp_path, "a.png", saved(image, "PNG"))
        assert operator.forward(record)["image_hash"] == str(THEIRS[by](opened(record)))


def test_images_that_look_alike_have_near_hashes(tmp_path: Path) -> None:
    image = picture(300, 200)
    forms = [
        saved(image, "PNG"),
        saved(image, "JPEG", quality=40),
        saved(image.resize((150, 100)), "WEBP"),
        saved(picture(300, 200, seed=1), "PNG"),
    ]
    operator = data.images.PerceptualHash(output_key="h")
    records = (stored(tmp_path, f"{n}", form) for n, form in enumerate(forms))
    first, again, small, other = (int(operator.forward(record)["h"], 16) for record in records)

    assert (first ^ again).bit_count() <= 4
    assert (first ^ small).bit_count() <= 4
    assert (first ^ other).bit_count() > 15


@pytest.mark.parametrize("colour", ["black", "grey", "white"])
def test_bits_that_rounding_would_decide_are_0(colour: str, tmp_path: Path) -> None:
    record = stored(tmp_path, "a.png", saved(Image.new("L", (70, 50), colour), "PNG"))

    expected = "0" * 16 if colour == "black" else "8" + "0" * 15
    assert data.images.PerceptualHash().forward(record)["image_hash"] == expected


def test_mirrored_halves_differ_from_imagehash_only_in_such_bits(tmp_path: Path) -> None:
    half = picture(64, 128)
    both = Image.new("RGB", (128, 128))
    both.paste(half, (0, 0))
    both.paste(ImageOps.mirror(half), (64, 0))
    record = stored(tmp_path, "a.png", saved(both, "PNG"))

    ours = np.array([int(bit) for bit in f"{int(_hash(record), 16):064b}"]).reshape(8, 8)
    theirs = imagehash.phash(opened(record)).hash
    assert (ours[:, ::2] == theirs[:, ::2]).all()  # the other frequencies have no part in it


def _hash(record: dict) -> str:
    return str(data.images.PerceptualHash().forward(record)["image_hash"])
