"""Operators give the results observed on other tools; the cases are not in the package."""

import functools
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.library import golden_dedup, golden_filters, golden_pieces, golden_texts

Difference = Callable[[dict[str, Any]], str]

# By group; a comparison returns how the operator differs from the case.
COMPARISONS: Mapping[str, Difference] = {
    "dedup": golden_dedup.difference,
    "filters": golden_filters.difference,
    **dict.fromkeys(("chunk", "tokens"), golden_pieces.difference),
    **dict.fromkeys(("html", "language", "pii", "text"), golden_texts.difference),
}

# By operator, which cases differ on purpose: texts shorter than an n-gram are compared, too.
DEVIATIONS: Mapping[str, Callable[[dict[str, Any]], bool]] = {
    "dedup.NearDuplicate": golden_dedup.compares_short_texts,
}

_EXTRA = {"spacy": "spacy", "lingua": "lingua"}


@functools.cache
def cases() -> Mapping[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    for path in _files():
        for line in path.read_text(encoding="utf-8").strip().split("\n"):
            case = json.loads(line)
            found[f"{case['operator']} {_variant(case)}".strip()].append(case)
    return dict(sorted(found.items()))


def _files() -> list[Path]:
    places = [parent / "shared" / "research" for parent in Path(__file__).resolve().parents]
    paths = [place / "operators_golden_public.jsonl" for place in places]
    return [path for path in paths if path.exists()][:1]


def _variant(case: Mapping[str, Any]) -> str:
    options = case["options"]
    found = options.get("words") or options.get("sentences") or options.get("backend")
    return found if isinstance(found, str) else ""


def failures(name: str) -> list[str]:
    operator = name.split(maxsplit=1)[0]
    difference = COMPARISONS[operator.partition(".")[0]]
    differences = [(case, difference(case)) for case in cases()[name]]
    on_purpose = DEVIATIONS.get(operator, lambda _: False)
    return [
        f"{_short(case)}: {said}" for case, said in differences if said and not on_purpose(case)
    ]


def _short(case: Mapping[str, Any]) -> str:
    return f"{case['options']} {json.dumps(case['input'], ensure_ascii=False)[:200]}"


@pytest.mark.skipif(not _files(), reason="the observed cases are not here")
@pytest.mark.parametrize("name", [name for name in cases() if name.split(".")[0] in COMPARISONS])
@pytest.mark.filterwarnings("ignore:.* is named .* now:DeprecationWarning")  # names of those tools
def test_the_operator_gives_the_observed_results(name: str) -> None:
    for extra in {_EXTRA[word] for word in name.split() if word in _EXTRA}:
        pytest.importorskip(extra)

    assert failures(name) == []
