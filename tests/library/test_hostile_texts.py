"""Every record operator of the library survives texts that are made to break it."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from dagster_dataops import Drop, data_register
from dagster_dataops.errors import DataOpsError, MissingExtraError, NoTextError
from tests.faults.cases import paired
from tests.library.adversarial import HOSTILE, NO_TEXTS, SCRIPTS, survives
from tests.library.all_operators import GROUPS

# Options that an operator needs.
OPTIONS: Mapping[str, dict[str, Any]] = {
    "chat.ToMessages": {"format": "question_answer"},
    "decontaminate.NGrams": {"benchmark": [{"query": "a " * 20, "label": "b"}]},
    "decontaminate.Overlap": {"benchmark": [{"query": "a " * 20, "label": "b"}]},
    "dedup.Against": {"reference": [{"text": "a"}]},
    "filters.Blocklist": {"words": ["bad", "a b", "("]},
    "filters.C4BadWords": {"words": ["bad", "http"], "keep_ratio": 0.5},
    "filters.CharacterShare": {"characters": "{}", "max_ratio": 0.1},
    "filters.Field": {"key": "text", "op": "matches", "value": "a.b"},
    "filters.FlaggedWords": {"words": ["bad"]},
    "filters.Lambda": {"function": len},
    "filters.Pretraining": {"languages": ["en"]},
    "filters.Regex": {"pattern": "bad"},
    "images.Classify": {"model": lambda images: [[1] for _ in images], "labels": ["a"]},
    "images.Crop": {"box": [0, 0, 1, 1]},
    "images.Embed": {"model": lambda images: [[1] for _ in images]},
    "images.Resize": {"width": 1},
    "images.Score": {"model": len},
    "images.TextArea": {"model": lambda images: [[] for _ in images]},
    "join.Lookup": {"table": [{"text": "a", "b": 1}], "on": "text"},
    "sample.Rate": {"ratio": 0.5},
    "language.Filter": {"languages": ["en"]},
    "pii.Replace": {"phones": True, "cards": True, "ibans": True, "keys": True},
    "filters.Url": {"url_key": "text", "domains": ["a.b"], "banned_subwords": ["bad"]},
    "shape.Add": {"values": {"a": 1}},
    "shape.Cast": {"types": {"text": "parsed"}},
    "shape.Drop": {"keys": ["text"]},
    "shape.Explode": {"input_key": "text"},
    "shape.Fill": {"values": {"text": "a"}},
    "shape.Rename": {"keys": {"text": "a"}},
    "shape.Select": {"keys": ["text"]},
    "shape.Template": {"template": "{text:>3}"},
    "score.Model": {"model": lambda texts: [len(text) for text in texts]},
    "text.Replace": {"pattern": "a+"},
    "tokens.EncodeChat": {"tokenizer": "bytes", "template": "chatml"},
    "tokens.Pack": {"input_key": "text"},
    "verify.Fields": {"required": ["text"], "non_empty": True},
    "verify.JsonSchema": {"schema": {"type": "string"}, "input_key": "text"},
    "verify.Regex": {"pattern": "bad"},
}
# Operators that need a trained model; their own tests do the same.
OF_MODELS = {
    "pii.Entities",
    "score.CharNGram",
    "score.Embedding",
    "score.Linear",
    "score.Perplexity",
    "retrieval.HardNegatives",
}
IN_RUNS = {"llm", "review"}  # groups whose operators need a run, with clients or people
# Groups whose operators refuse values that are no text, and those that do not read texts.
OF_TEXTS = {"filters", "language", "markdown", "pii", "text"}
OF_ANY_VALUE = {"filters.Field", "filters.Lambda"}
MORE_OF_TEXTS = {
    "verify.BoxedAnswer",
    "verify.Calculations",
    "verify.Json",
    "verify.Python",
    "verify.Regex",
}
# Operators for which no text is an error, with the options to try.
WITHOUT_ERRORS: list[tuple[str, dict[str, Any]]] = [
    ("chunk.Sentences", {"overlap_sentences": 2}),
    ("chunk.Sentences", {"overlap_sentences": 2, "max_tokens": 50}),
    ("chunk.Characters", {"max_chars": 100, "split_pattern": r"[.!?]\s+", "overlap_chars": 10}),
    ("chunk.Tokens", {"tokenizer": "o200k_base", "max_tokens": 100, "overlap_tokens": 20}),
    ("chunk.Tokens", {"tokenizer": "bytes", "max_tokens": 100, "overlap_tokens": 20}),
    ("chunk.Tokens", {"tokenizer": "whitespace", "max_tokens": 100, "overlap_tokens": 20}),
    ("chunk.Semantic", {"chunk_size": 60}),
    ("score.Embedding", {"model": lambda texts: [[len(text)] for text in texts]}),
    ("verify.AnswerF1", {"input_key": "text", "reference_key": "text"}),
    ("code.Licence", {}),
    ("verify.BoxedAnswer", {"style": "boxed"}),
    ("verify.BoxedAnswer", {"style": "hash"}),
    ("verify.Calculations", {}),
    ("verify.Fields", {}),
    ("verify.Json", {}),
    ("verify.JsonSchema", {}),
    ("verify.Python", {}),
    ("verify.Regex", {}),
]


def operators(groups: set[str] | None = None) -> list[str]:
    found = [
        (f"{group}.{name}", data_register.operator(group, name).__dataops_spec__)
        for group in sorted(groups or GROUPS.keys() - IN_RUNS)
        for name in data_register.operators(group)
    ]
    shipped = "dagster_dataops."
    return [
        name
        for name, spec in found
        if spec.kind.name == "record" and spec.place.startswith(shipped) and name not in OF_MODELS
    ]


def made(name: str, **options: Any) -> Any:
    """Return the operator, or skip the test where its package is missing."""
    try:
        return data_register.operator(*name.split("."))(**OPTIONS.get(name, {}), **options)
    except MissingExtraError as error:
        pytest.skip(str(error))


def calls_of(operator: Any) -> Callable[[dict], Any]:
    """Return the method of an operator that takes one record, or a batch of one."""
    batch = operator.__dataops__.spec.batch
    return (lambda record: getattr(operator, batch)([record])) if batch else operator.forward


@pytest.mark.slow
@pytest.mark.cpu_timeout(300)
@pytest.mark.parametrize("name", operators())
def test_hostile_texts_cost_linear_time_and_raise_nothing(name: str) -> None:
    forward = calls_of(made(name))
    records = [{"text": text} for text in (*HOSTILE.values(), *SCRIPTS, "", "\n", " ", None)]

    for record in [*records, {}]:
        with suppress(DataOpsError):  # the clear error of a record
            forward(dict(record))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode"), paired(operators({"filters"}), ["tag", "both"]))
def test_filters_write_what_json_can_hold(name: str, mode: str) -> None:
    operator = made(name, mode=mode, reuse_stats=True)
    records = [{"text": text, "id": 1} for text in (*SCRIPTS, "", "\n", "a b c. " * 50, None)]

    for record in records:
        dropped = made(name).forward(dict(record))
        returned = operator.forward(dict(record))
        reason = dropped.reason if isinstance(dropped, Drop) else None
        assert isinstance(returned, Drop) == (reason is not None and mode == "both")
        if not isinstance(returned, Drop):
            kinds = {type(value) for value in returned["stats"].values()}
            assert kinds <= {int, float, bool}
            assert kinds
        if mode == "tag":
            assert returned["drop_reason"] == reason
            assert returned["text"] == record["text"]


@pytest.mark.parametrize(("name", "options"), WITHOUT_ERRORS)
def test_no_text_is_an_error(name: str, options: dict[str, Any]) -> None:
    survives(calls_of(made(name, **options)))


@pytest.mark.parametrize("name", sorted({*operators(OF_TEXTS)} - OF_ANY_VALUE | MORE_OF_TEXTS))
def test_values_that_are_no_texts_are_errors_of_their_records(name: str) -> None:
    forward = made(name).forward

    for value in NO_TEXTS:
        with pytest.raises(NoTextError, match="'text' is no text"):
            forward({"text": value})
