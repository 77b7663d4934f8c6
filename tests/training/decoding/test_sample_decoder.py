import gzip
import io
import json
import pickle

import numpy as np
import pytest

from dagster_dataops import Cooker, SampleDecoder, crude
from dagster_dataops.errors import ConfigurationError, MissingExtraError
from tests.each import each
from tests.training.declared import captions, png


def array_file(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "value"),
    [
        ("a.txt", "é".encode(), "é"),
        ("a.transcript", b"x", "x"),
        ("a.json", b'{"n": [1]}', {"n": [1]}),
        ("a.cls", b"7\n", 7),
        ("a.JSON", b"1", 1),
        ("a.x.txt", b"x", "x"),
        ("txt", b"x", "x"),
        ("a.txt.gz", gzip.compress(b"x", mtime=0), "x"),
        ("a.bin.gz", gzip.compress(b"x", mtime=0), b"x"),
        ("a.bin", b"\0", b"\0"),
        ("a.mp4", b"\0", b"\0"),
        ("a.pkl", pickle.dumps(1), pickle.dumps(1)),
        ("noname", b"x", b"x"),
    ],
)
def test_the_suffix_decides_what_a_file_becomes(name, data, value):
    assert SampleDecoder().decode(name, data) == value


def test_arrays_are_read_without_code():
    decoder = SampleDecoder()
    assert decoder.decode("a.npy", array_file(np.arange(3))).tolist() == [0, 1, 2]
    file = io.BytesIO()
    np.savez(file, x=np.ones(2))
    assert decoder.decode("a.npz", file.getvalue())["x"].tolist() == [1, 1]
    with pytest.raises(ValueError, match="allow_pickle"):
        decoder.decode("a.npy", array_file(np.array([{}], dtype=object)))


@pytest.mark.parametrize(
    ("form", "shape", "dtype", "first"),
    [
        ("rgb8", (4, 6, 3), "uint8", [200, 200, 200]),
        ("rgba8", (4, 6, 4), "uint8", [200, 200, 200, 255]),
        ("l8", (4, 6), "uint8", 200),
        ("rgb", (4, 6, 3), "float32", [np.float32(200 / 255)] * 3),
        ("l", (4, 6), "float32", np.float32(200 / 255)),
    ],
)
def test_images_become_arrays(form, shape, dtype, first):
    made = SampleDecoder(image_decode=form).decode("a.png", png(200, "L"))
    assert (made.shape, made.dtype.name) == (shape, dtype)
    assert np.allclose(made[0, 0], first)


@pytest.mark.parametrize(
    ("form", "mode"), [("pil", "RGB"), ("pilrgb", "RGB"), ("pill", "L"), ("pilrgba", "RGBA")]
)
def test_images_stay_images_of_pillow(form, mode):
    made = SampleDecoder(image_decode=form).decode("a.png", png(200, "L"))
    assert (made.mode, made.size) == (mode, (6, 4))


@pytest.mark.parametrize(
    ("form", "shape"), [("torchrgb", (3, 4, 6)), ("torch", (3, 4, 6)), ("torchl8", (4, 6))]
)
def test_images_become_tensors(form, shape):
    torch = pytest.importorskip("torch")
    made = SampleDecoder(image_decode=form).decode("a.png", png(200, "L"))
    assert tuple(made.shape) == shape
    assert made.dtype == (torch.uint8 if form.endswith("8") else torch.float32)


@each("form", ["", "8", "pil8", "bgr", "torchRGB", None])
def test_other_forms_of_images_are_refused(form):
    with pytest.raises(ConfigurationError, match="image_decode"):
        SampleDecoder(image_decode=form)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("000.png", b"no image"),
        ("000.json", b"{"),
        ("000.txt", b"\xff"),
        ("000.cls", b"x"),
        ("000.txt.gz", b"x"),
        ("000.npy", b"x"),
    ],
)
def test_the_error_of_a_damaged_file_names_it(name, data):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each decoder has its own
        SampleDecoder().decode(name, data)
    if not isinstance(caught.value, MissingExtraError):
        assert caught.value.__notes__ == [f"(decoding {name}, {len(data):,} bytes)"]


def test_a_cooker_gets_values_if_a_decoder_is_given(tmp_path):
    folder = captions(tmp_path / "a")
    (folder / ".nv-meta" / "dataset.yaml").write_text("__class__: CrudeWebdataset\n")

    def cook(sample):
        return {"n": sample["cls"] + 1, "text": sample["txt"], "size": sample["png"].size}

    records = list(crude(folder).cook([Cooker(cook)], decoder=SampleDecoder(image_decode="pil")))

    assert records[1] == {"n": 2, "text": "caption 1", "size": (6, 4)}
    assert json.loads(json.dumps(records[0]))["text"] == "caption 0"


def test_decoders_of_equal_options_are_equal():
    assert pickle.loads(pickle.dumps(SampleDecoder())) == SampleDecoder()
    assert SampleDecoder() != SampleDecoder(image_decode="pil")
    assert len({SampleDecoder(), SampleDecoder()}) == 1
    assert repr(SampleDecoder()) == "SampleDecoder(image_decode='torchrgb')"
