"""Tests of files in exports: tar members, Parquet and Hugging Face columns, thumbnails."""

import base64
import io
import json
import re
import tarfile

import pytest

from dagster_dataops import config, data, data_register, pipeline, report
from dagster_dataops.errors import ExportError
from dagster_dataops.files import File, bytes_and_path

pillow = pytest.importorskip("PIL.Image", reason="pictures need Pillow")


def png(number):
    made = io.BytesIO()
    pillow.new("RGB", (200, 100), (number, 0, 0)).save(made, "PNG")
    return made.getvalue()


@data_register("data.file_contents", _concurrency_mode="single")
def draw(record):
    number = record["n"]
    record["image"] = File(png(number))
    record["all"] = [File(b"one"), File(b"two")]
    return record


@pytest.fixture(autouse=True)
def root(tmp_path):
    with config.temporary(data_process_path=tmp_path / "root"):
        yield tmp_path / "root"


def exported(operator, count=3):
    with pipeline("p") as ppl:
        ppl.draw = draw()
        ppl.export = operator
    ppl([{"n": n, "text": "é"} for n in range(count)])
    return ppl


def test_a_tar_has_the_files_as_members_and_the_rest_as_json(root):
    exported(data.export.WebDataset(root / "tar" / "s-%03d.tar", files=True))
    with tarfile.open(root / "tar" / "s-000.tar") as tar:
        assert tar.getnames()[:3] == [
            "000000000.image.png",
            "000000000.json",
            "000000001.image.png",
        ]
        assert tar.extractfile("000000001.image.png").read() == png(1)
        rest = tar.extractfile("000000001.json").read()
    assert rest.startswith(b'{"n":1,"text":"\xc3\xa9","all":[{"file"')
    exported(data.export.WebDataset(root / "tar2" / "%d.tar", members={"png": "image"}))
    with tarfile.open(root / "tar2" / "0.tar") as tar:
        assert tar.extractfile("000000002.png").read() == png(2)


def test_parquet_has_bytes_and_paths(root):
    parquet = pytest.importorskip("pyarrow.parquet")
    schema = {"image": "file", "all": "list<file>"}
    exported(data.export.Parquet(root / "x.parquet", schema=schema))
    rows = parquet.read_table(root / "x.parquet").to_pylist()
    assert [row["image"]["bytes"] for row in rows] == [png(n) for n in range(3)]
    assert rows[0]["image"]["path"].endswith(".png")
    assert [one["bytes"] for one in rows[0]["all"]] == [b"one", b"two"]


def test_hugging_face_gets_images(root):
    pytest.importorskip("pyarrow")
    datasets = pytest.importorskip("datasets", reason="the export is read by it")
    exported(data.export.HuggingFace(root / "hf", features={"image": "image"}))
    found = datasets.load_from_disk(str(root / "hf"))["train"]
    assert found[2]["image"].getpixel((0, 0)) == (2, 0, 0)


def test_a_missing_file_fails_the_export_with_its_record(root):
    with pipeline("p") as ppl:
        ppl.export = data.export.WebDataset(root / "tar" / "%d.tar", files=True)
    with pytest.raises(ExportError, match=r"record 1 .*column 'image': the file none\.png cannot"):
        ppl([{"n": 0}, {"n": 1, "image": {"file": "none.png"}}])


def test_bytes_and_path_are_those_of_a_file(tmp_path):
    (tmp_path / "a.png").write_bytes(png(1))
    for value in (str(tmp_path / "a.png"), {"file": str(tmp_path / "a.png")}):
        assert bytes_and_path(value) == {"bytes": png(1), "path": "a.png"}


def test_the_report_shows_the_first_images(root):
    with pipeline("p") as ppl:
        ppl.draw = draw()
    ppl([{"n": n} for n in range(30)])
    page = report(ppl).read_text()
    assert page.count("data:image/png;base64,") == 12
    assert "img-src data:" in page


@pytest.mark.parametrize(
    ("form", "mode"), [("TIFF", "RGB"), ("TIFF", "I;16"), ("ICO", "RGBA"), ("AVIF", "RGB")]
)
def test_the_report_shows_images_that_browsers_do_not(form, mode, tmp_path):
    pillow.init()
    if form not in pillow.SAVE:
        pytest.skip(f"this Pillow writes no {form}")
    pillow.new(mode, (200, 100)).save(tmp_path / f"a.{form.lower()}", form)
    (shown,) = _shown(tmp_path, tmp_path / f"a.{form.lower()}")
    assert max(shown.size) <= 96


def test_thumbnails_are_upright(tmp_path):
    turned = pillow.Exif()
    turned[0x0112] = 6  # a quarter to the right
    pillow.new("RGB", (200, 100)).save(tmp_path / "a.jpg", exif=turned)
    (shown,) = _shown(tmp_path, tmp_path / "a.jpg")
    assert shown.size == (48, 96)


def _shown(folder, path):
    """Return the thumbnails of the report of a pipeline with one image."""
    with pipeline("pictures") as ppl:
        ppl.same = data.shape.Add(values={"k": 1})
    source = folder / "in.jsonl"
    source.write_text(json.dumps({"image": {"file": str(path)}}) + "\n")
    with config.temporary(data_process_path=folder / "root"):
        ppl.materialize(source)
        page = report(ppl).read_text()
    found = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    return [pillow.open(io.BytesIO(base64.b64decode(one))) for one in dict.fromkeys(found)]
