"""Compare operators over sets with what was observed on other tools."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import data
from tests.execution.helpers import node, run, write_input

# datatrove splits sentences and words by spaCy.
_OTHER_DEFAULTS: Mapping[str, dict[str, Any]] = {
    "Sentences": {"sentences": "spacy", "words": "spacy"},
}


def difference(case: dict[str, Any]) -> str:
    name = case["operator"].partition(".")[2]
    if name in _OTHER_DEFAULTS:
        pytest.importorskip("spacy")
    options = {**_OTHER_DEFAULTS.get(name, {}), **case["options"]}
    records = case["input"]["records"]
    if name == "Decontaminate":
        return _said(_contaminated(options, records), case["expected"]["records"])
    numbered = [{**record, "i": position} for position, record in enumerate(records)]
    kept = _run(getattr(data.dedup, name)(**options, _concurrency_mode="single"), numbered)
    if name == "NearDuplicate":
        left = {record["i"] for record in kept}
        found = [position in left for position in range(len(records))]
        return _said(found, case["expected"]["keep"])
    found = [{"i": record["i"], "text": record["text"]} for record in kept]
    return _said(found, case["expected"]["records"])


def compares_short_texts(case: dict[str, Any]) -> bool:
    """Return whether two texts are shorter than an n-gram; datatrove keeps them both."""
    ids = {record["id"] for record in case["input"]["records"]}
    return {"short1", "short2"} <= ids


def _contaminated(options: dict[str, Any], records: list[dict[str, Any]]) -> list[Any]:
    operator = data.decontaminate.NGrams(**options, mode="tag")
    tagged = [dict(record) for record in records]
    for record in tagged:
        operator.forward(record)  # changes it
    return [
        {"keep": record["drop_reason"] is None, "ngram": record["contaminated_ngram"]}
        for record in tagged
    ]


def _run(operator: Any, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        dataset = write_input(Path(folder, "input.jsonl"), records)
        return run(operator, dataset, node(Path(folder))).dataset.read()


def _said(found: list[Any], expected: list[Any]) -> str:
    pairs = zip(found, expected, strict=False)
    wrong = [f"{at}: {a!r}, expected {b!r}" for at, (a, b) in enumerate(pairs) if a != b]
    if len(found) != len(expected):
        wrong.append(f"{len(found)} records, expected {len(expected)}")
    return "; ".join(wrong)
