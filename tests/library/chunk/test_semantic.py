import sys

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, MissingExtraError
from tests.library.adversarial import survives


def test_a_text_is_cut_at_lines_before_words() -> None:
    operator = data.chunk.Semantic(3)
    found = operator.forward({"text": "a b c\nd e\nf"})
    assert [record["text"] for record in found] == ["a b c", "d e\nf"]


@pytest.mark.parametrize(("unit", "size"), [("characters", 5), ("tokens", 2), ("words", 1)])
def test_the_unit_is_an_option(unit: str, size: int) -> None:
    found = data.chunk.Semantic(size, unit).forward({"text": "some words of prose"})
    assert [record["text"] for record in found] == [
        "some",
        "words",
        "of",
        "prose",
    ] or unit != "words"
    assert len(found) > 1


def test_options_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DefinitionError, match="unit"):
        data.chunk.Semantic(unit="pages")
    with pytest.raises(DefinitionError, match="overlap"):
        data.chunk.Semantic(10, overlap=10)
    monkeypatch.setitem(sys.modules, "semchunk.semchunk", None)
    with pytest.raises(MissingExtraError, match=r"dagster-dataops\[chunk\]"):
        data.chunk.Semantic()


def test_hostile_texts_are_cut() -> None:
    survives(data.chunk.Semantic(60).forward)
