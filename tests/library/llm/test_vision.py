"""Tests of dagster_dataops.library.llm.vision."""

from pathlib import Path

import pytest

from dagster_dataops import data
from dagster_dataops.assets.launchpad.operator_config import configured
from dagster_dataops.errors import OperatorOptionError, RecordError
from tests.library.llm.scripted_model import ScriptedModel
from tests.small_files import png


@pytest.fixture
def image(tmp_path: Path) -> str:
    path = tmp_path / "image.png"
    path.write_bytes(png())
    return str(path)


def asked() -> ScriptedModel:
    return ScriptedModel(lambda *_: "a red card")


def test_a_caption_is_written_beside_the_image(image: str) -> None:
    model = asked()
    record = {"file": {"file": image, "size": len(png())}}

    rows = data.llm.Caption(client=model)([record])

    assert rows == [{**record, "caption": "a red card"}]
    picture, text = model.requests[0]["messages"][-1]["content"]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert text["text"].startswith("Describe this image")


def test_a_question_is_asked_about_the_images_of_several_columns(image: str) -> None:
    model = asked()
    operator = data.llm.VisualQA(["left", "right"], question_key="meta.q", client=model)

    rows = operator([{"left": image, "right": [image], "meta": {"q": "Equal?"}}])

    assert rows[0]["answer"] == "a red card"
    kinds = [part["type"] for part in model.requests[0]["messages"][-1]["content"]]
    assert kinds == ["image_url", "image_url", "text"]
    assert model.requests[0]["messages"][-1]["content"][2]["text"] == "Equal?"


@pytest.mark.parametrize("question", [None, "", " \n"])
def test_a_record_without_a_question_fails_and_costs_nothing(image: str, question: object) -> None:
    model = asked()
    operator = data.llm.VisualQA(client=model, _ignore_errors=False)

    with pytest.raises(RecordError, match="the prompt is empty: it is made of question"):
        operator([{"file": image, "question": question}])

    assert not model.requests


def test_a_page_becomes_markdown_in_the_column_text(image: str) -> None:
    model = ScriptedModel(lambda *_: "# Title")

    rows = data.llm.ReadPage("page", client=model)([{"page": image}])

    assert rows[0]["text"] == "# Title"


@pytest.mark.parametrize("name", ["Caption", "VisualQA", "ReadPage"])
def test_images_are_named_by_input_key_alone(name: str) -> None:
    with pytest.raises(OperatorOptionError, match="'images' names no images here; .* input_key"):
        getattr(data.llm, name)(images="other")


@pytest.mark.parametrize("name", ["Caption", "VisualQA", "ReadPage"])
def test_another_option_can_be_changed_in_a_launch(name: str) -> None:
    before = getattr(data.llm, name)("photo", model="small")
    after = configured(before, {"params": {"model": "large"}})
    assert dict(after.__dataops__.options) == {**before.__dataops__.options, "model": "large"}
