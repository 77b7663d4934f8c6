"""The ready pipelines, with models that answer as the test says, and with a local server."""

import inspect
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import ModelClient, Pipeline, config
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library import ready
from tests.each import each
from tests.library.llm.scripted_model import ScriptedModel
from tests.models.running_server import running_server

for package, extra in (("rensa", "dedup"), ("bm25s", "retrieval"), ("aiohttp", "llm")):
    pytest.importorskip(package, reason=f"the extra {extra} is not installed")

pytestmark = pytest.mark.usefixtures("one_core")

Row = dict[str, Any]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ScriptedModel]:
    def use(answer: Callable[[str, Row], Any]) -> ScriptedModel:
        model = ScriptedModel(answer)
        monkeypatch.setitem(config.clients, "default", ModelClient(complete=model))
        return model

    return use


def results_of(ppl: Pipeline, records: list[Row]) -> dict[str, list[Row]]:
    reports = ppl.materialize(records)
    for name, report in reports.items():
        assert report.manifest.failed == 0, name
    others = {"index", "vector_index", "classifier", "parts"}  # no single file of records
    return {name: list(reports[name].dataset.read()) for name in reports.keys() - others}


def vectors_of(request: Row) -> Row:
    """Return a vector for each text, by the rivers that it names."""
    rows = [[float(name in text) for name in COUNTRIES] + [0.3] for text in request["input"]]
    return {"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]}


class Vectors(ScriptedModel):
    async def complete(self, request: Row) -> Row:
        return vectors_of(request) if "input" in request else await super().complete(request)


RIVERS = [
    "The Danube rises in the Black Forest and flows through ten countries to the Black Sea.",
    "The Rhine rises in the Alps and flows through six countries to the North Sea.",
    "The Elbe rises in the Giant Mountains and flows through two countries to the North Sea.",
]
COUNTRIES = {"Danube": "ten", "Rhine": "six", "Elbe": "two"}


def about_rivers(prompt: str, request: Row) -> Any:
    """Answer as a model that asks one good and one bad question about a river."""
    wanted = request.get("response_format", {}).get("json_schema", {}).get("schema", {})
    river = next(name for name in COUNTRIES if name in prompt or "it" in prompt)
    if "pairs" in wanted.get("properties", {}):
        asked = f"Through how many countries does the {river} flow?"
        good = {"question": asked, "answer": COUNTRIES[river]}
        return {"pairs": [good, {"question": f"What of the {river} is it?", "answer": "red"}]}
    if "grounded" in wanted.get("properties", {}):
        return {"quote": f"through {COUNTRIES[river]} countries", "grounded": "red" not in prompt}
    return {"reason": "r", "score": 5}


@pytest.mark.parametrize("embedding_model", [None, "vectors"])
@pytest.mark.slow
def test_documents_become_conversations_with_grounded_answers(monkeypatch, embedding_model) -> None:
    model = Vectors(about_rivers)
    monkeypatch.setitem(config.clients, "default", ModelClient(complete=model))
    ppl = ready.sft_from_documents(embedding_model=embedding_model, input_key="body")
    records = [{"body": text} for text in [*RIVERS, RIVERS[0] + " "]]

    rows = results_of(ppl, records)["training"]

    assert rows[0] == {
        "messages": [
            {"role": "user", "content": "Through how many countries does the Danube flow?"},
            {"role": "assistant", "content": "ten"},
        ],
        "quote": "through ten countries",
    }
    assert 1 <= len(rows) <= 3


@pytest.mark.parametrize("search", ["words", "vectors", "both"])
@pytest.mark.slow
def test_questions_get_negatives_that_lack_the_answer(monkeypatch, search) -> None:
    model = Vectors(about_rivers)
    monkeypatch.setitem(config.clients, "default", ModelClient(complete=model))
    ppl = ready.qa_for_retrieval(search=search, embedding_model="v", input_key="body")
    results = results_of(ppl, [{"body": text} for text in RIVERS])

    triplets, pairs = results["triplets"], results["reranker"]
    assert triplets
    for row in triplets:
        river = next(name for name in COUNTRIES if name in row["anchor"])
        assert river in row["positive"]
        assert row["negative"] in RIVERS
        assert COUNTRIES[river] not in row["negative"]
    assert sum(row["label"] for row in pairs) == len({row["anchor"] for row in triplets})
    assert len(pairs) == len(triplets) + sum(row["label"] for row in pairs)


def test_an_unknown_search_is_refused() -> None:
    with pytest.raises(DefinitionError, match="'bm25'; use one of 'words', 'vectors', 'both'"):
        ready.qa_for_retrieval(search="bm25")


def test_pairs_of_answers_differ_by_the_margin(answering) -> None:
    count = iter(range(100))

    def answer(prompt: str, request: Row) -> Any:
        if "response_format" not in request:
            return f"answer {next(count)} to {prompt}"
        if "Answer:" not in prompt:
            return {"reason": "r", "score": 1 if "unclear" in prompt else 5}
        last = int(prompt.rpartition("answer ")[2].partition(" ")[0])
        close = "close" in prompt
        return {"reason": "r", "score": (4 if close else 1) + (last % 2) * (1 if close else 4)}

    answering(answer)
    prompts = ["Why?", "Why?", "unclear", "close"]
    ppl = ready.preference_pairs(input_key="ask", samples=2, keep_keys=["id"])
    rows = results_of(ppl, [{"ask": p, "id": n} for n, p in enumerate(prompts)])["training"]

    assert [(row["prompt"], row["id"]) for row in rows] == [("Why?", 0)]
    assert rows[0].keys() == {"prompt", "chosen", "rejected", "id"}
    assert rows[0]["chosen"] != rows[0]["rejected"]


SUMS = [
    {"question": "half of 48?", "answer": "<<48/2=24>>24\n#### 24"},
    {"question": "half of 48?", "answer": "again\n#### 24"},
    {"question": "half of 10?", "answer": "<<10/2=6>>6\n#### 6"},
    {"question": "2+2?", "answer": "four"},
    {"question": "3+3?", "answer": "#### 6"},
    {"question": "4+4?", "answer": "#### 8"},
    {"question": "5+5?", "answer": "#### 10"},
]


def solved(prompt: str, request: Row) -> str:
    if "3+3" in prompt:
        return "wrong\n7"
    if "4+4" in prompt:
        return "4+4=<<4+4=9>>\n8"
    return "48/2=24\n24" if "48" in prompt else "5+5=<<5+5=10>>10\n10"


@pytest.mark.slow
def test_solutions_are_kept_whose_answers_and_sums_are_right(answering) -> None:
    answering(solved)
    results = results_of(ready.verified_mathematics(samples=2), SUMS)

    assert [row["question"] for row in results["known"]] == ["half of 48?", "3+3?", "4+4?", "5+5?"]
    assert [row["reference"] for row in results["training"]] == ["24", "10"]
    assert results["training"][0]["messages"] == [
        {"role": "user", "content": "half of 48?"},
        {"role": "assistant", "content": "48/2=24\n24"},
    ]


@pytest.mark.parametrize(("style", "answer"), [("boxed", r"so \boxed{10}"), ("plain", "10")])
def test_answers_may_be_marked_in_other_ways(answering, style, answer) -> None:
    answering(solved)
    ppl = ready.verified_mathematics(input_key="problem", answer_key="a", style=style, samples=1)
    rows = results_of(ppl, [{"problem": "5+5?", "a": answer}, {"problem": "1", "a": ""}])
    assert [row["reference"] for row in rows["training"]] == ["10"]


CHATS: list[Row] = [
    *ready.FORMS["chats"].records,
    {"messages": [{"role": "user", "content": "Which river flows through Vienna?  "},
                  {"role": "assistant", "content": "The  Danube."}]},
    {"messages": [{"role": "user", "content": "only a question"}]},
    {"messages": [{"role": "user", "content": "my key is sk-proj-" + "aB3" * 20},
                  {"role": "assistant", "content": "Do not tell it."}]},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},
                                               {"type": "text", "text": "b"}]},
                  {"role": "assistant", "content": None, "tool_calls": [
                      {"id": "1", "type": "function",
                       "function": {"name": "f", "arguments": {"x": 1}}}]},
                  {"role": "tool", "tool_call_id": "1", "content": "42"},
                  {"role": "assistant", "content": "It is 42."}]},
]  # fmt: skip


@pytest.mark.slow
def test_chats_of_all_formats_are_cleaned() -> None:
    rows = results_of(ready.clean_chats(), CHATS)["training"]

    lasts = [row["messages"][-1]["content"] for row in rows]
    assert lasts == ["The Danube.", "3", "Do not tell it.", "It is 42."]
    assert "<SECRET>" in rows[2]["messages"][0]["content"]
    assert all("conversation_text" not in row for row in rows)


def test_a_rubric_scores_chats(answering) -> None:
    answering(lambda prompt, _: {"reason": "r", "score": 5 if "Danube" in prompt else 2})
    ppl = ready.clean_chats(rubric="Is it about rivers?", refusals=None)
    rows = results_of(ppl, CHATS[:3])["training"]
    assert [row["messages"][-1]["content"] for row in rows] == ["The Danube."]


def test_a_classifier_learns_what_the_model_says(answering) -> None:
    model = answering(lambda prompt, _: {"reason": "r", "score": int("example" in prompt)})
    source = random.Random(0)
    texts = [
        f"{'This example explains' if number % 2 else 'Buy now and save with'} "
        + " ".join(source.choices("river stone tree house garden mountain".split(), k=5))  # noqa: SIM905
        for number in range(200)
    ]
    ppl = ready.distilled_classifier(input_key="body", labelled=100)
    results = results_of(ppl, [{"body": text} for text in texts])

    assert len(model.requests) == 100
    assert [row["body"] for row in results["kept"]] == texts[1::2]
    assert all(row["label"] == round(row["score"]) for row in results["tested"])
    assert results["tested"]


MIT = "# SPDX-License-Identifier: MIT\n"
BODY = "# Lengths of rivers in kilometres, by their names.\nRIVERS = {name}\n" + "".join(
    f"print('{word}', {len(word)})  # of the word\n" for word in RIVERS[0].split()
)
FILES = {
    "a.py": MIT + BODY,
    "same.py": MIT + BODY,
    "near.py": "# Copyright 2020 by others\n" + MIT + BODY + "\n",
    "gpl.py": "# SPDX-License-Identifier: GPL-3.0-only\n" + BODY,
    "none.py": BODY,
    "broken.py": MIT + "# A list.\nx = [1, 2\n",
    "made.py": MIT + "# This file is auto-generated.\nx = 1\n",
    "long.py": MIT + "# A line.\nx = '" + "a" * 2000 + "'\n",
    "key.py": MIT + "# A key.\nkey = 'AKIA" + "QWERTYUIOP123456" + "'\n",
    "photo.jpg": MIT,
    "b.js": "// SPDX-License-Identifier: MIT\n// A number.\nlet river = 2850;\n",
}


@pytest.mark.slow
def test_code_is_kept_by_language_licence_and_form() -> None:
    pytest.importorskip("pygments")
    records = [{"path": f"src/{name}", "text": text} for name, text in FILES.items()]
    rows = results_of(ready.code_corpus(), records)["distinct"]

    assert [row["path"] for row in rows] == ["src/a.py", "src/key.py", "src/b.js"]
    assert [(row["language"], row["licence"]) for row in rows] == [
        ("python", "MIT"),
        ("python", "MIT"),
        ("javascript", "MIT"),
    ]
    assert "AKIA" not in rows[1]["text"]
    everything = ready.code_corpus(licences=None, languages=["python"], min_comments=None)
    assert len(results_of(everything, records)["distinct"]) < len(records)


def test_segments_are_translated_and_scored(answering) -> None:
    def answer(prompt: str, request: Row) -> Any:
        if "response_format" in request:
            return {"reason": "because", "score": 2 if "Schiffe" in prompt else 5}
        assert "into German" in prompt
        return "Schiffe fahren." if "Ships" in prompt else "Der Fluss."

    answering(answer)
    ppl = ready.translations(to="German", input_key="body", max_chars=20, keep_keys=["id"])
    results = results_of(ppl, [{"id": 7, "body": "The river is long. Ships pass the city."}])

    assert [row["score"] for row in results["scored"]] == [5, 2]
    assert results["pairs"] == [
        {
            "body": "The river is long.",
            "translation": "Der Fluss.",
            "score": 5,
            "score_reason": "because",
            "chunk": 0,
            "id": 7,
        }
    ]


def photographs(folder: Path) -> list[Row]:
    image_module = pytest.importorskip("PIL.Image", reason="the extra images is not installed")
    numpy = pytest.importorskip("numpy")
    pictures = []
    for number, (seed, size) in enumerate([(0, 200), (1, 200), (1, 180), (2, 40)]):
        noise = numpy.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=numpy.uint8)
        path = folder / f"{number}.png"
        image_module.fromarray(noise).resize((size + 40, size)).save(path)
        pictures.append({"file": str(path), "alt": f"picture {seed}"})
    return pictures


@pytest.mark.parametrize("text_key", [None, "alt"])
@pytest.mark.slow
def test_images_are_kept_with_texts_that_fit(answering, tmp_path, text_key) -> None:
    def answer(prompt: str, request: Row) -> Any:
        parts = request["messages"][-1]["content"]
        assert any(part["type"] == "image_url" for part in parts)
        text = " ".join(part.get("text", "") for part in parts)
        if "response_format" in request:
            return {"reason": "r", "score": 1 if "picture 1" in text else 5}
        return "A caption."

    model = answering(answer)
    ppl = ready.image_text_pairs(text_key=text_key)
    rows = results_of(ppl, photographs(tmp_path))["stripped"]

    assert len(rows) == (2 if text_key is None else 1)
    assert len(model.requests) == (4 if text_key is None else 2)
    assert rows[0].get("caption") == ("A caption." if text_key is None else None)


@pytest.fixture(scope="module")
def server():
    with running_server() as running:
        yield running


@pytest.mark.slow
def test_every_pipeline_runs_with_a_server_and_asks_nothing_twice(server, tmp_path, monkeypatch):
    monkeypatch.setenv("DATAOPS_LLM_BASE_URL", server.address)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    for name, form in ready.FORMS.items():
        records = photographs(tmp_path) if name == "image_text" else list(form.records)
        ppl = form.build(**form.options)
        server.reset()

        reports = ppl.materialize(records)
        assert {node: report.manifest.failed for node, report in reports.items()} == dict.fromkeys(
            ppl.graph.nodes, 0
        )
        first = server.stats()["requests"]
        ppl.materialize(records)
        assert server.stats()["requests"] == first
        assert (first > 0) == any(
            "llm." in repr(node.operator) for node in ppl.graph.nodes.values()
        )


@each("name", ready.FORMS)
def test_a_ready_pipeline_has_the_common_shape(name: str) -> None:
    form = ready.FORMS[name]
    ppl = form.build("renamed", **form.options)
    assert ppl.name == "renamed"
    options = inspect.signature(form.build).parameters
    assert next(iter(options)) == "name"
    assert ("model" in options) == ("client" in options)
    for node in ppl.graph.nodes.values():
        assert "client" not in node.operator.__dataops__.chosen
