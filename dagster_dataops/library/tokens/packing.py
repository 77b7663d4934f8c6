"""``tokens.Pack``: fill sequences of a fixed length with the tokens of many texts."""

from typing import Any

from dagster_dataops.errors import DefinitionError, UnfitRecordError
from dagster_dataops.library.tokens.token_counts import tokens
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record


class Pack(tokens):
    """Join lists of token ids, and cut them into sequences of ``max_tokens=2048``.

    Reads ``input_key="token_ids"``, a list of integers as ``tokens.Encode`` writes it, of
    ``_batch_size`` records at a time; missing and ``null`` are empty. Writes records with
    ``output_key="token_ids"`` alone. No token is lost or moved. The last sequence of a batch may be
    shorter: it is filled with ``pad_id`` if that is given, and left out with ``drop_last=True``; so
    choose a large ``_batch_size``, such as 1000. ``end_id=None`` is put behind each text, unless
    ``tokens.Encode`` has done so.

    A record whose value is no such list fails. This operator takes windows of the input, so it
    cannot be part of a chain.

    Args:
        max_tokens: Ids in a sequence.
        input_key: Column of the ids.
        output_key: Column of the sequence.
        end_id: Id behind each text; ``None`` for none.
        pad_id: Fills the last sequence; ``None`` leaves it shorter.
        drop_last: Whether a shorter last sequence is left out.
    """

    def __init__(
        self,
        max_tokens: PositiveInt = 2048,
        input_key: str = "token_ids",
        output_key: str = "token_ids",
        *,
        end_id: int | None = None,
        pad_id: int | None = None,
        drop_last: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if drop_last and pad_id is not None:
            msg = "pad_id fills the last sequence and drop_last leaves it out; give one of them"
            raise DefinitionError(msg)
        self._length, self._read, self._written = max_tokens, input_key, output_key
        self._end = [] if end_id is None else [end_id]
        self._pad, self._drop_last = pad_id, drop_last

    def forward_window(self, records: list[Record]) -> list[Record]:
        ids: list[Any] = []
        for record in records:
            ids += self._ids(record)
            ids += self._end
        sequences = [
            ids[start : start + self._length] for start in range(0, len(ids), self._length)
        ]
        missing = -len(ids) % self._length
        if missing and self._drop_last:
            sequences.pop()
        elif missing and self._pad is not None:
            sequences[-1] += [self._pad] * missing
        return [{self._written: sequence} for sequence in sequences]

    def _ids(self, record: Record) -> list[Any]:
        ids = record.get(self._read)
        if ids is None:
            return []
        if not isinstance(ids, list) or any(type(one) is not int for one in ids):
            msg = f"key {self._read!r} holds no list of integers; run tokens.Encode first"
            raise UnfitRecordError(msg)
        return ids
