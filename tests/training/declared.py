"""Datasets that declare the type of their samples, for tests."""

import io
import json

import pytest

from tests.training.filestores.shards import write_prepared, write_tar

ENERGON = "sample_type:\n  __module__: megatron.energon\n  __class__: "
LOADER = """
def sample_loader(raw):
    assert "txt" not in raw
    return {"image": raw["png"], "caption": raw["json"]["caption"] + raw["__key__"]}

def renamed(raw):
    return {"__key__": "<" + raw["__key__"] + ">", "image": None, "caption": raw["txt"]}

def part_filter(part):
    return part in ("png", "json")

def wrong(raw):
    return [raw]
"""


def png(number, mode="RGB"):
    """Return a PNG file of 6 x 4 pixels."""
    image = pytest.importorskip("PIL.Image").new(mode, (6, 4), number)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def captions(
    folder, count=5, config=f"{ENERGON}CaptioningSample\nfield_map: {{image: png, caption: txt}}\n"
):
    """Write a prepared dataset of images and captions, which declares the type of its samples."""
    members = []
    for number in range(count):
        meta = {"caption": f"json {number}", "boxes": [[1, 2], [number, 4]]}
        members += [
            (f"{number:03}.png", png(number)),
            (f"{number:03}.txt", f"caption {number}".encode()),
            (f"{number:03}.json", json.dumps(meta).encode()),
            (f"{number:03}.cls", str(number).encode()),
        ]
    write_tar(folder / "s-0.tar", members)
    write_prepared(folder, {"s-0.tar": count})
    (folder / ".nv-meta" / "loader.py").write_text(LOADER)
    (folder / ".nv-meta" / "dataset.yaml").write_text(config)
    return folder
