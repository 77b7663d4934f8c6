"""retrieval.Index, HardNegatives and TrainingForm."""

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import data, pipeline
from dagster_dataops.errors import DefinitionError, NewerVersionError

pytest.importorskip("bm25s", reason="the extra retrieval is not installed")

PASSAGES = [
    "The Danube flows through ten countries and ends in the Black Sea.",
    "The Rhine flows through six countries and ends in the North Sea.",
    "The Elbe flows through two countries and ends in the North Sea.",
    "Bread is baked from flour, water and salt.",
    "the  danube flows through ten countries and ends in the BLACK Sea.",
    "Ships on the Danube pass ten countries before they see the Black Sea, ten in all.",
]
QUESTION = {
    "question": "How many countries does the Danube flow through?",
    "text": PASSAGES[0],
    "answer": "ten",
}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def indexed(texts: list[str] = PASSAGES, **options: Any) -> Any:
    return data.retrieval.Index(**options)([{"text": text} for text in texts])


def negatives_of(record: dict[str, Any], index: Any, **options: Any) -> list[str]:
    (row,) = data.retrieval.HardNegatives(index, **options)([record])
    return row["negatives"]


def test_passages_with_words_of_the_question_are_found_the_best_first() -> None:
    index = indexed()
    found = negatives_of(QUESTION, index, max_score_ratio=None, count=9)
    assert found == [PASSAGES[5], PASSAGES[1], PASSAGES[2]]
    assert negatives_of(QUESTION, index, max_score_ratio=None, count=1) == [PASSAGES[5]]


def test_passages_that_may_answer_the_question_are_left_out() -> None:
    index = indexed()
    assert PASSAGES[5] not in negatives_of(QUESTION, index, answer_key="answer")
    twin = [*PASSAGES, PASSAGES[0] + " Yes."]
    assert twin[-1] in negatives_of(QUESTION, indexed(twin), max_score_ratio=1)
    assert twin[-1] not in negatives_of(QUESTION, indexed(twin), max_score_ratio=0.8)


def test_a_question_without_negatives_is_dropped() -> None:
    question = {**QUESTION, "question": "Danube?", "text": PASSAGES[5]}
    operator = data.retrieval.HardNegatives(indexed(PASSAGES[1:4] + PASSAGES[5:]))
    assert operator([question]) == []
    assert operator.forward(dict(question)).reason == "no_negative"
    index = indexed(PASSAGES[1:4] + PASSAGES[5:])
    assert negatives_of(question, index, keep_empty=True) == []
    kept = {**question, "negatives": ["known"]}
    assert negatives_of(kept, index) == ["known"]


def test_a_right_passage_that_is_not_indexed_is_an_error_of_its_record() -> None:
    index = indexed(PASSAGES[1:4])
    operator = data.retrieval.HardNegatives(index, _ignore_errors=False)
    with pytest.raises(Exception, match="is not in the index"):
        operator([QUESTION])
    assert negatives_of(QUESTION, index, max_score_ratio=None)


def test_vectors_find_passages_and_a_second_index_adds_others() -> None:
    vectors = [[1, 0, 0], [0.9, 0.4, 0], [0.5, 0.8, 0], [-1, 0, 0.1], [1, 0, 0], [0.99, 0.1, 0]]
    rows = [{"text": text, "v": vector} for text, vector in zip(PASSAGES, vectors, strict=True)]
    index = data.retrieval.Index(vector_key="v")(rows)
    options = {"vector_key": "v", "count": 2}

    first = negatives_of({**QUESTION, "v": [2, 0, 0]}, index, **options)
    more = negatives_of({**QUESTION, "v": [2, 0, 0], "negatives": first[:1]}, index, **options)

    assert first == [PASSAGES[1], PASSAGES[2]]  # the nearest one has 0.99 of the score
    assert more == [PASSAGES[1], PASSAGES[2]]
    operator = data.retrieval.HardNegatives(index, **options, _ignore_errors=False)
    for wrong in ([1, 0], [0, 0, 0], "x", None, [1, float("inf"), 0]):
        with pytest.raises(Exception, match="v: "):
            operator.forward({**QUESTION, "v": wrong})
    for key in (None, "v"):
        with pytest.raises(DefinitionError, match="vector_key"):
            data.retrieval.HardNegatives(index if key is None else indexed(), vector_key=key)


def test_an_index_needs_passages_with_words(tmp_path) -> None:
    for texts in ([], ["", "  "], ["!?"]):
        with pytest.raises(Exception, match="no record has a passage"):
            indexed(texts)
    with pytest.raises(DefinitionError, match="no folder of retrieval.Index"):
        data.retrieval.HardNegatives(tmp_path)


def test_other_scripts_are_found() -> None:
    texts = ["多瑙河流经十个国家。", "莱茵河流经六个国家。", "Хлеб пекут из муки.", "😀 x"]
    question = {"question": "多瑙河流经几个国家？", "text": texts[0]}
    assert negatives_of(question, indexed(texts)) == [texts[1]]


def test_the_same_passages_give_the_same_files_and_the_operator_can_be_sent() -> None:
    first, second = indexed(), indexed()
    operator = data.retrieval.HardNegatives(first, max_score_ratio=None)
    copy = pickle.loads(pickle.dumps(operator._index))
    assert copy.position_of(PASSAGES[4]) == copy.position_of(PASSAGES[0]) == 0
    assert copy.position_of("another") is None
    for mode in ("single", "thread", "process"):
        rows = data.retrieval.HardNegatives(second, _concurrency_mode=mode)([QUESTION] * 3)
        assert rows == [rows[0]] * 3


def test_training_forms() -> None:
    row = {"question": "q", "text": "p", "negatives": ["a", "b"], "other": 1}

    def form(style: str) -> list[dict[str, Any]]:
        return data.retrieval.TrainingForm(style=style)([row])

    assert form("triplets") == [
        {"anchor": "q", "positive": "p", "negative": "a"},
        {"anchor": "q", "positive": "p", "negative": "b"},
    ]
    assert form("pairs") == [
        {"query": "q", "passage": "p", "label": 1},
        {"query": "q", "passage": "a", "label": 0},
        {"query": "q", "passage": "b", "label": 0},
    ]
    assert form("lists") == [{"query": "q", "docs": ["p", "a", "b"], "labels": [1, 0, 0]}]
    assert form("groups") == [{"query": "q", "pos": ["p"], "neg": ["a", "b"]}]
    for wrong in (None, "a", [1], {}):
        with pytest.raises(Exception, match="negatives must be a list of texts"):
            data.retrieval.TrainingForm().forward({**row, "negatives": wrong})


def test_the_index_is_a_node_of_a_pipeline() -> None:
    with pipeline("mined") as mined:
        mined.passages = data.shape.Drop(["question"])
        mined.index = data.retrieval.Index()
        operator = data.retrieval.HardNegatives(index=mined.index)
        mined.add("negatives", operator, inputs=[mined.source])
        mined.triplets = data.retrieval.TrainingForm()
    rows = [{"text": text, "question": f"{text}?"} for text in PASSAGES[:3]]
    assert len(mined(rows)) == 6


@pytest.mark.parametrize(
    ("facts", "error", "words"),
    [
        ({"format": 2, "kind": "graph"}, NewerVersionError, r"index.json has format 2, .* reads 1"),
        ({"kind": "bm25"}, DefinitionError, "no folder of retrieval.Index"),
        ({"format": 1, "kind": "vectors"}, DefinitionError, "no folder of retrieval.Index"),
        ({"format": "1", "kind": "bm25"}, DefinitionError, "no folder of retrieval.Index"),
        ({"format": 1, "kind": ["bm25"]}, DefinitionError, "no folder of retrieval.Index"),
        ([1], DefinitionError, "no folder of retrieval.Index"),
    ],
)
def test_an_index_of_another_format_is_refused(facts: Any, error: type, words: str) -> None:
    index = Path(indexed())
    assert json.loads((index / "index.json").read_text("utf-8"))["format"] == 1
    (index / "index.json").write_text(json.dumps(facts), "utf-8")
    with pytest.raises(error, match=words):
        data.retrieval.HardNegatives(index)


def test_an_index_without_a_number_has_the_first_format(tmp_path: Path) -> None:
    index = tmp_path / "copied"
    shutil.copytree(indexed(), index)
    facts = json.loads((index / "index.json").read_text("utf-8"))
    question = {"question": "Which river?", "text": PASSAGES[0]}
    expected = negatives_of(question, index, keep_empty=True)
    del facts["format"]
    (index / "index.json").write_text(json.dumps(facts), "utf-8")
    assert negatives_of(question, index, keep_empty=True) == expected
