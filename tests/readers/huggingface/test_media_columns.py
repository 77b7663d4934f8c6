"""Tests of images and sounds in datasets of Hugging Face: read, and written again."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import datasets
import pytest

from dagster_dataops import data, load_result, pipeline, readers
from dagster_dataops.files import File, FileReference
from tests.hub_server import running, use

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("huggingface_hub")
media_columns = pytest.importorskip(
    "dagster_dataops.readers.huggingface.media_columns"
).media_columns


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def png(shade: int) -> bytes:
    """Return a picture of one pixel."""
    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes([0, shade]))
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", head)
        + _chunk(b"IDAT", pixels)
        + _chunk(b"IEND", b"")
    )


WAV = b"RIFF" + struct.pack("<I", 36) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8, 8, 1, 8)
WAV += b"data" + struct.pack("<I", 0)
FEATURES = datasets.Features(
    {
        "n": datasets.Value("int64"),
        "image": datasets.Image(decode=False),
        "images": datasets.List(datasets.Image(decode=False)),
        "sound": datasets.Audio(decode=False),
    }
)


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return rows with an image in memory, one on the disk, and none."""
    (folder / "a b.png").write_bytes(png(9))
    kept = {"bytes": None, "path": str(folder / "a b.png")}
    made = [{"bytes": png(n), "path": None} for n in range(3)]
    sound = {"bytes": WAV, "path": "a.wav"}
    return [
        {"n": 0, "image": made[0], "images": made, "sound": sound},
        {"n": 1, "image": kept, "images": [], "sound": sound},
        {"n": 2, "image": None, "images": [made[1], None], "sound": None},
    ]


@pytest.fixture(params=["memory", "disk", "hub"])
def source(request, tmp_path: Path, monkeypatch) -> Any:
    """A dataset with images, as the argument of the reader."""
    table = pa.Table.from_pylist(rows(tmp_path), schema=FEATURES.arrow_schema)
    dataset = datasets.Dataset(datasets.table.InMemoryTable(table))
    if request.param == "memory":
        yield dataset
    elif request.param == "disk":
        dataset.save_to_disk(str(tmp_path / "saved"))
        yield str(tmp_path / "saved")
    else:
        file = io.BytesIO()
        pq.write_table(table, file)
        with running() as hub:
            use(hub, monkeypatch)
            hub.commit("org/name", {"data/train-00000-of-00001.parquet": file.getvalue()})
            yield "org/name"


def test_images_become_files_and_paths_references(source, tmp_path: Path) -> None:
    first, second, third = readers.read_huggingface(source)
    assert first["image"] == File(png(0), "image/png")
    assert first["images"] == [File(png(n), "image/png") for n in range(3)]
    assert first["sound"].data == WAV
    # `save_to_disk` puts the bytes of files in.
    kept = source == str(tmp_path / "saved")
    path = {"file": str(tmp_path / "a b.png")}
    assert second["image"] == (File(png(9), "image/png") if kept else path)
    assert second["images"] == []
    assert (third["image"], third["sound"]) == (None, None)
    assert third["images"] == [File(png(1), "image/png"), None]


def test_a_run_stores_files_by_content_and_writes_them_again(source, tmp_path: Path) -> None:
    stream = readers.read_huggingface(source)
    with pipeline("pictures") as ppl:
        ppl.same = data.shape.Add(values={"k": 1})
        ppl.written = data.export.HuggingFace(
            tmp_path / "written", features={"image": "image", "sound": "audio"}
        )
    ppl.materialize(stream)

    first, second, third = load_result(tmp_path / "results" / "pictures" / "same")
    assert first["image"]["file"].startswith("files/")
    assert first["image"]["media_type"] == "image/png"
    assert first["image"] == first["images"][0]
    assert FileReference.of(second["image"]).media_type in {None, "image/png"}
    assert third["image"] is None
    again = datasets.load_from_disk(str(tmp_path / "written"))["train"]
    assert isinstance(again.features["image"], datasets.Image)
    assert isinstance(again.features["sound"], datasets.Audio)
    again = again.cast_column("image", datasets.Image(decode=False))
    again = again.cast_column("sound", datasets.Audio(decode=False))
    images = [one and one["bytes"] for one in again["image"]]
    assert images == [png(0), png(9), None]
    assert [one and one["bytes"] for one in again["sound"]] == [WAV, WAV, None]


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of its upload
def test_images_are_pushed_to_the_hub_and_read_back(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "b.png").write_bytes(png(7))
    records = [{"n": 0, "image": {"file": str(tmp_path / "b.png")}}, {"n": 1, "image": None}]
    with running() as hub:
        use(hub, monkeypatch)
        export = data.export.HuggingFaceHub(
            tmp_path / "pushed", "org/name", features={"image": "image"}
        )
        export(records)
        first, second = readers.read_huggingface("org/name")
        (shard,) = [one for name, one in hub.files("org/name").items() if name.endswith(".parquet")]
    assert first == {"n": 0, "image": File(png(7), "image/png")}
    assert second == {"n": 1, "image": None}
    features = datasets.Features.from_arrow_schema(pq.read_schema(io.BytesIO(shard)))
    assert isinstance(features["image"], datasets.Image)


def test_a_column_of_another_form_is_read_by_its_type(tmp_path: Path) -> None:
    table = pa.table({"image": [{"bytes": b"a", "name": "b"}], "text": ["c"]})
    metadata = {"huggingface": '{"info": {"features": {"image": {"_type": "Image"}, "x": 1}}}'}
    assert media_columns(table.schema.with_metadata(metadata)) == {}
    for damaged in ("{", "[]", '{"info": {"features": []}}'):
        assert media_columns(table.schema.with_metadata({"huggingface": damaged})) == {}
    assert media_columns(table.schema) == {}


def test_documents_films_and_lists_of_files_are_written_as_their_features_and_read_back(
    tmp_path: Path,
) -> None:
    contents = {"a.pdf": b"%PDF-1.7\n%%EOF", "b.mp4": b"\0\0\0\x14ftypisom\0\0\0\0isom"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    for n in range(2):
        (tmp_path / f"{n}.png").write_bytes(png(n))
    pictures = [{"file": str(tmp_path / f"{n}.png")} for n in range(2)]
    named = {"paper": str(tmp_path / "a.pdf"), "film": str(tmp_path / "b.mp4")}
    kinds = {"paper": "pdf", "film": "video", "images": "list<image>"}
    folder = data.export.HuggingFace(tmp_path / "written", features=kinds)(
        [{**named, "images": pictures}, {"paper": None, "film": None, "images": []}]
    )

    written = datasets.load_from_disk(folder)["train"]
    assert isinstance(written.features["paper"], datasets.Pdf)
    assert isinstance(written.features["film"], datasets.Video)
    assert written.features["images"] == datasets.List(datasets.Image())
    first, second = readers.read_huggingface(written)
    assert [first[name].data for name in ("paper", "film")] == list(contents.values())
    assert first["images"] == [File(png(n), "image/png") for n in range(2)]
    assert second == {"paper": None, "film": None, "images": []}
