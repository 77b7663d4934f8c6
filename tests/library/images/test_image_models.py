"""Operators that apply models to images: functions, and ONNX files that the tests make."""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, MissingExtraError
from tests.each import each
from tests.library import onnx_files
from tests.library.media import opened, picture, reason, saved, signals, stored

BATCHES: list[int] = []


def widths(images: list[Any]) -> list[list[float]]:
    BATCHES.append(len(images))
    return [[1.0, image.width, 2.0] for image in images]


def one(operator: Any, record: dict[str, Any]) -> dict[str, Any]:
    (found,) = operator.forward_batch([dict(record)])
    return dict(found)


@pytest.fixture
def record(tmp_path: Path) -> dict[str, Any]:
    return stored(tmp_path, "a.png", saved(picture(96, 64, mode="RGBA"), "PNG"))


@pytest.fixture
def onnx(tmp_path: Path) -> Any:
    pytest.importorskip("onnxruntime", reason="the package onnxruntime is not installed")

    def write(content: bytes) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.onnx"
        path.write_bytes(content)
        return path

    return write


# ------------------------------------------------------------ functions


def test_a_function_gets_batches_of_upright_images(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    records = [
        stored(tmp_path, f"{n}.jpg", saved(picture(60, 40, n), "JPEG", exif=exif)) for n in range(3)
    ]
    BATCHES.clear()
    operator = data.images.Embed(widths, _batch_size=2, _concurrency_mode="single")

    assert [found["embedding"] for found in operator(records)] == [[1.0, 40.0, 2.0]] * 3
    assert BATCHES == [2, 1]


def test_labels_scores_and_vectors_are_written(record: dict[str, Any]) -> None:
    labels = ["a", "b", "c"]
    classified = one(data.images.Classify(widths, labels), record)
    assert (classified["label"], classified["label_score"]) == ("b", 96.0)
    assert "label_score" not in one(data.images.Classify(widths, labels, score_key=None), record)
    likely = one(data.images.Classify(widths, labels, normalization="softmax"), record)
    assert likely["label_score"] == pytest.approx(1)

    assert one(data.images.Score(widths), record)["score"] == 2
    assert one(data.images.Score(widths, label="1"), record)["score"] == 96
    single = data.images.Score(lambda images: [0.0 for _ in images], normalization="sigmoid")
    assert one(single, record)["score"] == 0.5

    unit = one(data.images.Embed(widths, normalize=True), record)["embedding"]
    assert np.linalg.norm(unit) == pytest.approx(1)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ([], "returned 0 results for 1 image"),
        ([[1.0, 2.0]], "returned 2 numbers, and there are 3 labels"),
        ([[[1.0, 2.0], [3.0, 4.0]]], r"array of shape \(2, 2\)"),
        ([[1.0, float("nan"), 2.0]], "finite"),
        ([["a", "b", "c"]], "could not convert"),
    ],
)
def test_results_that_do_not_fit_are_an_error(
    result: list[Any], said: str, record: dict[str, Any]
) -> None:
    operator = data.images.Classify(lambda _: result, ["a", "b", "c"])

    with pytest.raises(ValueError, match=said):
        one(operator, record)


def test_options_that_do_not_fit_are_refused(record: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match="label is 'cat'; give the position"):
        data.images.Score(widths, label="cat")
    with pytest.raises(ValueError, match="returned 3 numbers; label is 3"):
        one(data.images.Score(widths, label="3"), record)
    with pytest.raises(ValueError, match="length 0"):
        one(data.images.Embed(lambda _: [[0.0]], normalize=True), record)
    with pytest.raises(DefinitionError, match="mean must have 3 numbers"):
        data.images.Embed(widths, mean=[0.5])


# ------------------------------------------------------------ text


@pytest.mark.parametrize(
    ("found", "share"),
    [
        ([], 0),
        ([[0, 0, 48, 64]], 0.5),
        ([[0, 0, 48, 64], [0, 0, 48, 32]], 0.5),
        ([[-9, -9, 48, 99], [48.2, 0, 96, 64]], 1),
        (np.array([[0, 0, 96, 16]]), 0.25),
        (np.array([[0.1, 0.9], [0.4, 0.5]]), 0.5),
        (np.array([[[0.1, 0.9]]]), 0.5),
        (np.array([[[[0.1], [0.9]]]]), 0.5),
        (np.array([[0.0, 0.0, 96.0, 16.0]]), 0.25),
    ],
)
def test_text_covers_a_share_of_the_image(found: Any, share: float, record: Any) -> None:
    operator = data.images.TextArea(lambda _: [found], mode="tag")

    assert signals(operator, record) == {"image_text_area": share}
    limit = data.images.TextArea(lambda _: [found], max_ratio=0.3)
    assert reason(limit, record) == ("high_image_text_area" if share > 0.3 else None)


def test_a_box_that_is_none_is_an_error(record: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="which is no box"):
        data.images.TextArea(lambda _: [[[1, 2]]]).forward(record)


# ------------------------------------------------------------ ONNX


@each("layout", [(True, "float"), (False, "float"), (True, "uint8"), (False, "uint8")])
def test_an_onnx_file_gets_the_pixels(layout: Any, onnx: Any, record: dict[str, Any]) -> None:
    first, kind = layout
    path = onnx(onnx_files.channel_means(first=first, kind=kind))
    mean, std = [0.5, 0.4, 0.3], [0.2, 0.25, 0.5]
    for fit, by_pillow in {
        "cover": ImageOps.fit,
        "inside": ImageOps.pad,
        "stretch": lambda image, size, method: image.resize(size, method),
    }.items():
        operator = data.images.Embed(path, fit=fit, mean=mean, std=std)
        small = by_pillow(opened(record).convert("RGB"), (8, 8), Image.Resampling.BICUBIC)
        expected = np.asarray(small, float).mean(axis=(0, 1))
        if kind == "float":
            expected = (expected / 255 - mean) / std
        assert one(operator, record)["embedding"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_a_result_does_not_depend_on_the_batch(onnx: Any, tmp_path: Path) -> None:
    records = [stored(tmp_path, f"{n}.png", saved(picture(seed=n), "PNG")) for n in range(5)]
    path = onnx(onnx_files.channel_means())
    several, single = (
        data.images.Embed(path, _batch_size=size, _concurrency_mode=mode, _max_workers=2)(records)
        for size, mode in ((4, "process"), (1, "single"))
    )

    assert several == single


def test_a_size_that_the_file_leaves_open_is_an_option(onnx: Any, record: dict[str, Any]) -> None:
    path = onnx(onnx_files.channel_means(side="side"))

    assert len(one(data.images.Embed(path, size=16), record)["embedding"]) == 3
    with pytest.raises(DefinitionError, match="size is None; give the size"):
        data.images.Embed(path)
    with pytest.raises(DefinitionError, match="size is 9; give the size"):
        data.images.Embed(onnx(onnx_files.channel_means()), size=9)


def test_an_output_is_chosen_by_name(onnx: Any, record: dict[str, Any]) -> None:
    path = onnx(onnx_files.channel_map())
    operator = data.images.TextArea(path, output="map", mode="tag", threshold=0.4)
    small = np.asarray(opened(record).convert("RGB").resize((8, 8), Image.Resampling.BICUBIC))

    expected = (small.astype(np.float32) / 255).mean(axis=2) >= 0.4
    assert signals(operator, record)["image_text_area"] == pytest.approx(expected.mean(), abs=0.02)
    with pytest.raises(DefinitionError, match="output is None; model .* has map, same"):
        data.images.TextArea(path)


def test_an_operator_with_a_file_is_pickled_as_its_path(onnx: Any, record: dict[str, Any]) -> None:
    path = onnx(onnx_files.channel_means())
    operator = data.images.Embed(path)
    sent = pickle.dumps(operator._model)

    assert pickle.loads(sent)([opened(record).convert("RGB")])[0].shape == (3,)
    path.write_bytes(onnx_files.channel_means(kind="uint8"))
    with pytest.raises(DefinitionError, match="is not the file that the run started with"):
        pickle.loads(sent)


def test_files_that_are_no_such_models_are_refused(
    onnx: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DefinitionError, match="is no file; give an ONNX file"):
        data.images.Score(tmp_path / "none.onnx")
    with pytest.raises(DefinitionError, match="cannot be read as ONNX"):
        data.images.Score(onnx(b"no model"))
    with pytest.raises(DefinitionError, match="it must take one batch of images"):
        data.images.Score(onnx(onnx_files.sums_of_texts()))
    path = onnx(onnx_files.channel_means())
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match="onnx"):
        data.images.Score(path)


@each("extra", [("images", "PIL"), ("audio", "soundfile"), ("video", "av")])
def test_operators_without_their_packages_name_the_extra(
    extra: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    group, package = extra
    monkeypatch.setitem(sys.modules, package, None)
    for name in dir(getattr(data, group)):
        needed = {"Classify": [widths, ["a"]], "Score": [widths], "Embed": [widths]}
        given = {"TextArea": [widths], "Resize": [], **needed}.get(name, [])
        options = {"width": 9} if name == "Resize" else {}
        with pytest.raises(MissingExtraError, match=rf"{group}\.{name}.*\[{group}\]"):
            getattr(getattr(data, group), name)(*given, **options)
