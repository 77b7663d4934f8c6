"""``tokens.Count``, ``tokens.Filter`` and ``tokens.Encode``."""

from functools import partial
from typing import Annotated, Any, ClassVar

from dagster_dataops.data import data_register
from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.analysis.tokenizers.tokenization import Tokenizer
from dagster_dataops.library.analysis.tokenizers.tokenization import tokenizer as tokenizer_of
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.filters.rules import TextFilter, bounds, no_text
from dagster_dataops.operators.options.file_content import FileContent
from dagster_dataops.operators.options.ranges import AtLeastZero, PositiveInt
from dagster_dataops.records import Record

tokens: Any = data_register.new_group("tokens")


class Count(tokens):
    """Count the tokens of a text.

    Reads ``input_key="text"`` and writes the number to ``output_key="tokens"``.

    ``tokenizer="o200k_base"``, or ``"cl100k_base"`` or ``"voyage3_base"`` (extra ``tokens``), the
    path of a ``tokenizer.json`` (extra ``tokenizers``), ``"whitespace"`` or ``"bytes"``. Names of
    special tokens in the text count as text. Nothing is downloaded: the vocabularies are in the
    package bpe-openai. tiktoken, which counts the same, downloads them.

    Args:
        tokenizer: Name of a vocabulary, path of a ``tokenizer.json``, ``whitespace`` or ``bytes``.
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the number.
    """

    def __init__(
        self,
        tokenizer: Annotated[str, FileContent] = "o200k_base",
        input_key: str = "text",
        output_key: str = "tokens",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._tokenizer = tokenizer_of(tokenizer)
        self._column, self._written = FieldKey(input_key), output_key

    def forward(self, record: Record) -> Record:
        record[self._written] = self._tokenizer.count(self._column.text(record))
        return record


class Filter(TextFilter, tokens):
    """Keep texts with ``min_tokens=10`` to ``max_tokens=None`` tokens, inclusive.

    Reads ``input_key``. ``tokenizer="o200k_base"`` is as in `tokens.Count` (extra ``tokens`` or
    ``tokenizers``). Signal ``num_token``; reasons ``empty``, ``low_num_token``, ``high_num_token``.

    Source: ``token_num_filter`` of Data-Juicer, which downloads its tokenizer.

    Args:
        min_tokens: Least tokens; ``None`` for no limit.
        max_tokens: Most tokens; ``None`` for no limit.
        tokenizer: Name of a vocabulary, path of a ``tokenizer.json``, ``whitespace`` or ``bytes``.
    """

    renamed_options: ClassVar = {"min_num": "min_tokens", "max_num": "max_tokens"}

    nothing = staticmethod(no_text)

    def __init__(
        self,
        *,
        min_tokens: AtLeastZero | None = 10,
        max_tokens: AtLeastZero | None = None,
        tokenizer: Annotated[str, FileContent] = "o200k_base",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        count = partial(_num_token, counter=tokenizer_of(tokenizer))
        self.rules = bounds("num_token", count, min_tokens, max_tokens)


def _num_token(text: AnalyzedText, counter: Tokenizer) -> int:
    return counter.count(text.text)


class Encode(tokens):
    """Write the ids of the tokens of a text as a list.

    Reads ``input_key="text"`` and writes ``output_key="token_ids"``. ``max_tokens=None`` cuts the
    list. ``end_id=None`` is added behind it, within ``max_tokens``. ``tokenizer`` is as in
    ``tokens.Count`` (extra ``tokens`` or ``tokenizers``), without ``"whitespace"``, which has no
    ids.

    Args:
        tokenizer: Name of a vocabulary, path of a ``tokenizer.json``, or ``bytes``.
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the ids.
        max_tokens: Most ids, with ``end_id``; ``None`` for no limit.
        end_id: Id behind the text; ``None`` for none.
    """

    def __init__(
        self,
        tokenizer: Annotated[str, FileContent] = "o200k_base",
        input_key: str = "text",
        output_key: str = "token_ids",
        *,
        max_tokens: PositiveInt | None = None,
        end_id: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._tokenizer = tokenizer_of(tokenizer)
        self._tokenizer.encode("")  # refuses a tokenizer without ids
        self._column, self._written = FieldKey(input_key), output_key
        self._end = [] if end_id is None else [end_id]
        self._most = None if max_tokens is None else max(max_tokens - len(self._end), 0)

    def forward(self, record: Record) -> Record:
        ids: list[Any] = self._tokenizer.encode(self._column.text(record))
        record[self._written] = ids[: self._most] + self._end
        return record
