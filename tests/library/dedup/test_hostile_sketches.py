"""The sketches of all selections survive texts that are made to break them."""

from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import NoTextError
from tests.library.adversarial import HOSTILE, NO_TEXTS, SCRIPTS

TEXTS = [*HOSTILE.values(), *SCRIPTS, "", None]
OPERATORS: dict[str, dict[str, Any]] = {
    "Bloom": {"max_memory_mb": 1},
    "Lines": {},
    "NearDuplicate": {"verify": True},
    "Sentences": {"min_span_words": 2},
    "SimHash": {},
    "Substring": {"min_tokens": 3},
    "Url": {"input_key": "text"},
}


@pytest.mark.cpu_timeout(120)
@pytest.mark.parametrize("name", OPERATORS)
def test_hostile_texts_cost_linear_time_and_raise_nothing(tmp_path: Path, name: str) -> None:
    operator = getattr(data.dedup, name)(**OPERATORS[name])
    sketches = [operator.sketch({"text": text}) for text in [*TEXTS, *TEXTS]]
    scratch = {} if name == "Bloom" else {"scratch": tmp_path}
    verdicts = list(operator.keep(iter(sketches), **scratch))
    assert len(verdicts) == 2 * len(TEXTS)
    for text, verdict in zip([*TEXTS, *TEXTS], verdicts, strict=True):
        if not isinstance(verdict, bool):
            operator.change({"text": text}, verdict)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("value", NO_TEXTS)
def test_values_that_are_no_texts_are_errors_of_their_records(name: str, value: Any) -> None:
    with pytest.raises(NoTextError, match="'text' is no text"):
        getattr(data.dedup, name)(**OPERATORS[name]).sketch({"text": value})
