"""Decoders of the features of OFRecords."""

import io
import pickle
import sys

import numpy as np
import pytest

from dagster_dataops import readers
from dagster_dataops.errors import MissingExtraError, StreamDefinitionError
from tests.each import each
from tests.readers.ofrecord.ofrecord_writing import payload, written


@each("kind", ["int8", "uint8", "int32", "int64", "float32", "float64", "float", "double", "char"])
def test_numbers_become_arrays(kind):
    found = readers.OFRecordRawDecoder("n", (2, 2), kind)({"n": [1, 2, 3, 4]})
    assert found.tolist() == [[1, 2], [3, 4]]
    assert found.dtype == {"float": "float32", "double": "float64", "char": "int8"}.get(kind, kind)


def test_a_shape_without_dimensions_is_one_number():
    assert readers.OFRecordRawDecoder("n", (), "int64")({"n": [7]}) == 7


def test_bytes_are_signed_integers():
    features = {"n": [bytes([0, 127, 128, 255])]}
    assert readers.OFRecordRawDecoder("n", (4,), "int32")(features).tolist() == [0, 127, -128, -1]
    assert readers.OFRecordRawDecoder("n", (4,), "uint8")(features).tolist() == [0, 127, 128, 255]


def test_another_number_of_values_is_cut_or_filled_if_wanted():
    features = {"n": [1, 2, 3]}

    def decoded(size, **options):
        return readers.OFRecordRawDecoder("n", (size,), "int32", **options)(features).tolist()

    assert decoded(2, truncate=True) == [1, 2]
    assert decoded(5, truncate=True) == [1, 2, 3, 0, 0]
    assert decoded(5, auto_zero_padding=True) == [1, 2, 3, 0, 0]
    assert decoded(5, dim1_varying_length=True) == [1, 2, 3]
    varying = readers.OFRecordRawDecoder("n", (4, 3), "int32", dim1_varying_length=True)
    assert varying(features).tolist() == [[1, 2, 3]]
    refused = [
        (2, {}),
        (5, {}),
        (2, {"auto_zero_padding": True}),
        (2, {"dim1_varying_length": True}),
    ]
    for size, options in refused:
        with pytest.raises(ValueError, match=f"feature 'n' has 3 values, not {size}"):
            decoded(size, **options)


@each(
    "case",
    [
        ({"m": [1], "k": [2]}, "has no feature 'n'; its features: 'm', 'k'"),
        ({}, "its features: none"),
        ({"n": [b"a", b"b"]}, "must have one value of bytes; it has 2 values, bytes"),
        ({"n": [1.5]}, "has values that int32 cannot hold"),
    ],
)
def test_features_that_do_not_fit_are_refused(case):
    features, message = case
    with pytest.raises(ValueError, match=message):
        readers.OFRecordRawDecoder("n", (1,), "int32")(features)


def test_one_value_of_bytes_is_decoded():
    decode = readers.OFRecordBytesDecoder("n")
    assert decode({"n": [b"abc"]}) == b"abc"
    for values, found in ([], "0 values"), ([1], "1 value, no bytes"), ([b"a", b"b"], "2 values"):
        with pytest.raises(ValueError, match=found):
            decode({"n": values})


def picture(mode="RGB", color=(255, 128, 0), form="PNG", **options):
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.new(mode, (3, 2), color).save(file, form, **options)
    return file.getvalue()


def test_images_become_arrays_in_a_color_space():
    features = {"n": [picture()]}
    wanted = {"BGR": [0, 128, 255], "RGB": [255, 128, 0]}
    for space, pixel in wanted.items():
        found = readers.OFRecordImageDecoder("n", space)(features)
        assert found.shape == (2, 3, 3)
        assert found.dtype == np.uint8
        assert found[1, 2].tolist() == pixel
    assert readers.OFRecordImageDecoder("n", "GRAY")(features).shape == (2, 3, 1)
    assert readers.OFRecordImageDecoder("n")({"n": [picture("L", 7)]})[0, 0].tolist() == [7, 7, 7]


def test_an_image_is_turned_by_its_exif_data():
    image = pytest.importorskip("PIL.Image")
    exif = image.Exif()
    exif[0x0112] = 6
    found = readers.OFRecordImageDecoder("n")({"n": [picture(form="JPEG", exif=exif)]})
    assert found.shape == (3, 2, 3)


@each("data", [b"", b"no image", picture()[:40]])
def test_bytes_that_are_no_image_are_refused(data):
    with pytest.raises(ValueError, match="feature 'n' is no image that can be read"):
        readers.OFRecordImageDecoder("n")({"n": [data]})


def test_they_decode_the_records_of_a_file(tmp_path):
    data = payload(encoded=("bytes", [picture()]), label=("int32", [3]))
    path = written(tmp_path / "part-0", [data])
    decoders = {
        "image": readers.OFRecordImageDecoder("encoded", "RGB"),
        "label": readers.OFRecordRawDecoder("label", (), "int32"),
        "raw": readers.OFRecordBytesDecoder("encoded"),
    }
    (found,) = readers.read_ofrecord(path, pickle.loads(pickle.dumps(decoders)))
    assert (found["image"].shape, found["label"], found["raw"]) == ((2, 3, 3), 3, picture())


def test_arguments_that_do_not_fit_are_refused():
    for shape, kind, message in [
        ((0,), "int32", "shape has 0"),
        ((1.5,), "int32", "shape has 1.5"),
        ((1,), "int16", "dtype is 'int16'; it must be one of int8"),
    ]:
        with pytest.raises(StreamDefinitionError, match=message):
            readers.OFRecordRawDecoder("n", shape, kind)
    with pytest.raises(StreamDefinitionError, match="dim1_varying_length needs"):
        readers.OFRecordRawDecoder("n", (), "int32", dim1_varying_length=True)
    with pytest.raises(StreamDefinitionError, match="color_space is 'HSV'"):
        readers.OFRecordImageDecoder("n", "HSV")


def test_the_extra_is_named_without_its_packages(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r"dagster-dataops\[ofrecord\]"):
        readers.OFRecordImageDecoder("n")
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(MissingExtraError, match=r"dagster-dataops\[ofrecord\]"):
        readers.OFRecordRawDecoder("n", (1,), "int32")
