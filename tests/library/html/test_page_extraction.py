import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, OperatorOptionError

TEXT = "The harbour was quiet when the first boats came back, and nobody had slept that night. " * 4
PAGE = (
    f"<html><body><nav><a href='/'>Home</a></nav><article><h1>Title</h1><p>{TEXT}</p>"
    "<ul><li>One point of the list</li></ul></article><footer>Imprint</footer></body></html>"
)


@pytest.mark.parametrize("backend", ["trafilatura", "resiliparse"])
def test_the_main_text_is_extracted(backend):
    kept = data.html.Extract(backend=backend, timeout_s=60)([{"html": PAGE}, {"html": "<p></p>"}])

    assert len(kept) == 1
    assert TEXT.strip() in kept[0]["text"]
    assert "Imprint" not in kept[0]["text"]


def test_the_result_does_not_depend_on_earlier_pages():
    operator = data.html.Extract()
    first = operator.forward({"html": PAGE})["text"]

    for _ in range(9):
        assert operator.forward({"html": PAGE})["text"] == first


def test_markdown_and_all_text_are_extracted():
    markdown = data.html.Extract(format="markdown").forward({"html": PAGE})["text"]
    whole = data.html.Extract(backend="resiliparse", main_content=False).forward({"html": PAGE})

    assert "# Title" in markdown
    assert "Imprint" in whole["text"]


def test_pages_without_a_text_are_dropped_or_tagged():
    assert data.html.Extract().forward({"html": ""}).reason == "no_text"
    tagging = data.html.Extract(mode="tag")
    assert tagging.forward({"html": "<p></p>"})["drop_reason"] == "no_text"
    assert tagging.forward({"html": ""})["text"] is None
    assert tagging.forward({"html": PAGE})["drop_reason"] is None


def test_the_time_limit_is_a_setting_of_the_operator():
    assert data.html.Extract().__dataops__.settings.timeout == 1.0
    assert data.html.Extract(timeout_s=None).__dataops__.settings.timeout == 0
    assert data.html.Extract(_timeout=5).__dataops__.settings.timeout == 5


@pytest.mark.parametrize("option", ["backend", "format", "mode"])
def test_unknown_choices_are_refused(option):
    with pytest.raises((DefinitionError, OperatorOptionError), match=option):
        data.html.Extract(**{option: "other"})
