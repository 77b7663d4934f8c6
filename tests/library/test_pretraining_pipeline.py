import random
from typing import Any

import pytest

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.pretraining_pipeline import pretraining_pipeline

pytestmark = pytest.mark.usefixtures("one_core")

PROSE = (
    "The river rises early in spring. People walk along its banks, and children look for stones. "
    "In the evening, lamps are lit in all the houses; nobody hurries. The ferry comes at seven. "
)
CHINESE = "春天的早晨，河水慢慢上涨。人们沿着河岸散步，孩子们寻找石头。傍晚，家家户户点起了灯！"
# By step, a text that this step and no earlier one drops.
DROPPED = {
    "null_content": " \n ",
    "char_count": "Too short. It is. It is.",
    "word_count": "Unbelievablylongwordsareherenow! Incomprehensibilitiesfollow! "
    "Floccinaucinihilipilification! Antidisestablishmentarianism!",
    "sentence_count": "a text of many words but of one sentence only, " * 5,
    "special_char": PROSE + "\ufffd",
    "watermark": PROSE + "All rights reserved.",
    "idcard": PROSE + "Give your ID card, the ID number, and your passport number.",
    "javascript": "\n".join(
        ["The first line of text.", "The second line.", *["window.alert(1); the end of it."] * 5]
    ),
    "lorem_ipsum": PROSE + "Lorem ipsum dolor.",
    "colon_end": PROSE + "as follows: ",
    "ellipsis_end": PROSE + "\nand then...\nand so...",
    "no_punc": PROSE + "word " * 120 + ".",
    "curly_bracket": PROSE + "{}" * 20,
    "bullet_point": "\n".join(["- An item of a list. And another sentence."] * 8),
    "symbol_ratio": "Text. More of the text. The end of it. Ten words are needed here. "
    "# # # # # # # # # # # # # # # # # # Final words are long enough to count.",
    "stop_word": "It is what it was. They were there and we are here. " * 4
    + "You will be with me.",
    "unique_word": "Again stone river. Again stone river! " * 20,
    "word_blocklist": PROSE + "A forbidden word, a forbidden phrase.",
    "near_duplicates": PROSE,
}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def records() -> list[dict[str, Any]]:
    texts = [PROSE, *DROPPED.values(), PROSE.replace("river", "brook") + PROSE[:100] * 3]
    return [{"id": number, "text": text} for number, text in enumerate(texts)]


@pytest.mark.slow
def test_with_a_language_a_long_text_may_name_its_owner() -> None:
    for language, kept in (("de", True), ("zh", True), ("en", False)):
        step = pretraining_pipeline(language=language, blocked_words=["x"]).graph.nodes["watermark"]
        operator: Any = step.operator
        for mark in ("Copyright 2020 X", "版权所有"):
            left = [one["id"] for one in operator([{"id": 1, "text": PROSE * 4 + mark}])]
            assert left == [1] * kept
            assert not operator([{"id": 1, "text": mark}])
        assert not operator([{"id": 1, "text": PROSE * 4 + "confidential"}])


@pytest.mark.slow
def test_each_step_drops_its_text() -> None:
    ppl = pretraining_pipeline(blocked_words=["forbidden"])
    assert len(ppl.graph.nodes) == 24
    reports = ppl.materialize(records())
    left = [record["id"] for record in records()]
    for number, step in enumerate(DROPPED, 1):
        after = [record["id"] for record in reports[step].dataset.read()]
        assert sorted(set(left) - set(after)) == [number], step
        left = after
    assert [record["id"] for record in ppl(records())] == [0, len(DROPPED) + 1]


@pytest.mark.slow
def test_nodes_and_chains_agree() -> None:
    nodes = pretraining_pipeline("nodes", blocked_words=["forbidden"], max_tokens=20)
    chains = pretraining_pipeline(
        "chains", blocked_words=["forbidden"], max_tokens=20, chained=True
    )
    assert list(chains.graph.nodes) == ["filtered", "near_duplicates", "refined"]
    found = chains(records())
    assert found == nodes(records())
    assert len(found) > 4
    reports = chains.materialize(records())
    assert [row["name"] for row in reports["filtered"].manifest.funnel] == list(DROPPED)[:-1]


def test_texts_are_cleaned() -> None:
    dirty = PROSE + "See https://example.com/a?b <b>bold</b>  &amp; 😀\U0001f1e9\U0001f1ea  fine."
    (found,) = pretraining_pipeline(chained=True)([{"text": dirty}])
    assert found["text"].endswith("See bold & fine.")
    assert found["chunk"] == 0


def test_chinese_texts() -> None:
    texts = [CHINESE * 4, CHINESE, "的了吗呢吧啊。" * 20, "身份证，身份证，身份证。" + CHINESE * 4]
    texts = [*texts, "".join(random.Random(0).choices("天地人山水火风云雨雪", k=300))]
    ppl = pretraining_pipeline(language="zh", input_key="content", chained=True)
    found = ppl([{"content": text, "id": number} for number, text in enumerate(texts)])
    assert [record["id"] for record in found] == [0]


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(DefinitionError, match="'tlh'"):
        pretraining_pipeline(language="tlh")


@pytest.mark.parametrize(("language", "word"), [("de", "Haus "), ("ja", "家の")])
def test_only_the_characters_limit_a_long_text_outside_english(language, word):
    step = pretraining_pipeline(language=language).graph.nodes["word_count"].operator
    short = (
        pretraining_pipeline(language=language, max_words=2000).graph.nodes["word_count"].operator
    )

    assert len(step([{"text": word * 15_000}])) == 1
    assert short([{"text": word * 15_000}, {"text": word * 500}]) == [{"text": word * 500}]
