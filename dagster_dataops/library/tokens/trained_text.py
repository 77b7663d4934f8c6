"""The text of tokens, with the parts that are trained in brackets."""

from collections.abc import Sequence
from itertools import groupby

from dagster_dataops.library.analysis.tokenizers.tokenization import Tokenizer
from dagster_dataops.records import NOT_TRAINED


def marked_text(tokenizer: Tokenizer, ids: Sequence[int], labels: Sequence[int]) -> str:
    """Return the text of tokens, with ``[[`` and ``]]`` around those that are trained."""
    runs = groupby(zip(ids, labels, strict=True), key=lambda pair: pair[1] != NOT_TRAINED)
    texts = [(trained, tokenizer.decode([token for token, _ in run])) for trained, run in runs]
    return "".join(f"[[{text}]]" if trained else text for trained, text in texts)
