"""Pairs of answers in ``answer_pairs.jsonl``, each line ``[kind, answer, reference]``."""

import json
from pathlib import Path
from typing import Final

_LINES: Final = Path(__file__).with_suffix(".jsonl").read_text("utf-8").splitlines()


def _pairs(kind: str) -> list[tuple[str, str]]:
    return [(answer, reference) for of, answer, reference in map(json.loads, _LINES) if of == kind]


EQUAL: Final = _pairs("equal")
"""Equal as numbers or parts."""
EQUAL_EXPRESSIONS: Final = _pairs("expressions")
"""Equal as expressions."""
DIFFERENT: Final = _pairs("different")
