"""``tokens.Pack``: fill sequences of a fixed length with the tokens of many texts."""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import accumulate, chain
from operator import iconcat
from typing import Any, Final, Literal, TypeAlias

import orjson

from dagster_dataops.errors import DefinitionError, UnfitRecordError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.tokens.pack_plans import best_fit, pieces_of, wrapped_lengths
from dagster_dataops.library.tokens.raw_integers import RawIntegers, decoder, joined
from dagster_dataops.library.tokens.token_counts import tokens
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.operators.outcomes.packed_window import PackedWindow
from dagster_dataops.operators.outcomes.record_context import OperatorContext
from dagster_dataops.records import NOT_TRAINED, Record, decode

Lists: TypeAlias = tuple[list[Any], ...]  # one list for each column, all of one length

_DIGITS: Final = b"0123456789-,"
_WINDOW: Final = 1000
_COLUMN: Final = "token_ids"
_LENGTHS: Final = "seq_lengths"
_LABELS: Final = "labels"


class Pack(tokens):
    """Join lists of token ids into sequences of at most ``max_tokens=2048``.

    Reads ``input_key="token_ids"``, a list of integers as ``tokens.Encode`` writes it, of
    ``_batch_size`` records at a time; missing and ``null`` are empty. Writes records with
    ``output_key="token_ids"`` alone. ``columns=["input_ids", "labels"]`` reads and writes these
    instead: lists of equal length, which are packed in the same way.

    ``strategy="wrapped"`` joins all texts and cuts the result. No token is lost or moved. The last
    sequence of a batch may be shorter: it is filled with ``pad_id`` if that is given, and left out
    with ``drop_last=True``; so choose a large ``_batch_size``, such as 1000.

    ``strategy="best_fit"`` keeps texts whole: the longest first, each goes into the pack with the
    least room that still holds it; of equal ones, into that which has had the room longest. Packs
    are in the order in which they began, and a text is never in two packs. ``strategy="none"``
    makes a pack of each text. A text of more than ``max_tokens`` fails with
    ``on_overflow="error"``, loses its end with ``"cut"``, and becomes several with ``"split"``.
    Empty texts are dropped. ``_batch_size`` is 1000 for ``best_fit``. Each pack has the lengths of
    its texts, in order, as ``lengths_key="seq_lengths"``, so that attention and positions can begin
    anew with each. ``positions_key="position_ids"`` writes 0, 1, 2 and so on for each text, and
    ``boundaries_key="cu_seqlens"`` where texts begin and the last one ends, from 0. A name for one
    of the three also has ``wrapped`` write it, for the pieces of texts.

    ``end_id=None`` is put behind each text, unless ``tokens.Encode`` has done so. With ``pad_id``
    every pack has ``max_tokens``: ``pad_id`` in the first column, -100 in ``label_key``, 0 in
    others, and positions from 0; the lengths and boundaries do not count it. A model that shifts
    labels would learn the first token of a text from the text before it: with ``mask_first=True``
    that label is -100 for each text but the first of a pack of ``best_fit``.

    Counts ``packs``, ``packed_tokens``, ``unused_tokens`` and ``cut_tokens``, except for
    ``wrapped``. A record whose value is no such list fails. This operator takes windows of the
    input, so it cannot be part of a chain.

    Source: ``best_fit`` packs as ``bfd`` of TRL, with ``"split"`` as its ``bfd_split``.

    Args:
        max_tokens: Ids in a sequence.
        input_key: Column of the ids.
        output_key: Column of the sequence.
        end_id: Id behind each text; ``None`` for none.
        pad_id: Fills sequences; ``None`` leaves them shorter.
        drop_last: Whether a shorter last sequence is left out.
        strategy: ``wrapped``, ``best_fit`` or ``none``.
        columns: Columns that are packed, the ids first; ``None`` for ``input_key`` alone.
        on_overflow: What becomes of a text that is too long: ``error``, ``cut`` or ``split``.
        lengths_key: Column of the lengths; ``None`` is ``seq_lengths``, and no column for
            ``wrapped``.
        positions_key: Column of the positions; ``None`` for none.
        boundaries_key: Column of the boundaries; ``None`` for none.
        label_key: Column of the labels, one of ``columns`` behind the first.
        mask_first: Whether the first label of each text but the first of a pack becomes -100.
    """

    added_later = frozenset(
        {"strategy", "columns", "on_overflow", "lengths_key", "positions_key"}
        | {"boundaries_key", "label_key", "mask_first"}
    )

    def __init__(
        self,
        max_tokens: PositiveInt = 2048,
        input_key: str = _COLUMN,
        output_key: str = _COLUMN,
        *,
        end_id: int | None = None,
        pad_id: int | None = None,
        drop_last: bool = False,
        strategy: Literal["wrapped", "best_fit", "none"] = "wrapped",
        columns: Sequence[str] | None = None,
        on_overflow: Literal["error", "cut", "split"] = "error",
        lengths_key: str | None = None,
        positions_key: str | None = None,
        boundaries_key: str | None = None,
        label_key: str = _LABELS,
        mask_first: bool = True,
        **kwargs: Any,
    ) -> None:
        if strategy == "best_fit":
            kwargs.setdefault("_batch_size", _WINDOW)
        super().__init__(**kwargs)
        self._length, self._strategy, self._overflow = max_tokens, strategy, on_overflow
        self._read = _columns(columns, input_key, output_key)
        self._written = (output_key,) if columns is None else self._read
        self._end = [] if end_id is None else [end_id]
        self._pad, self._drop_last = pad_id, drop_last
        usual = None if strategy == "wrapped" else _LENGTHS
        self._lengths_key = lengths_key or usual
        self._positions_key, self._boundaries_key = positions_key, boundaries_key
        self._labels = [self._read.index(label_key)] if label_key in self._read[1:] else []
        if label_key != _LABELS and not self._labels:
            msg = f"label_key is {label_key!r}, which is none of the columns behind the first"
            raise DefinitionError(msg)
        self._masked = self._labels if mask_first and strategy == "best_fit" else []
        self._context: OperatorContext | None = None
        self._check_options()
        self._decoded = decode if strategy == "wrapped" else decoder(self._read)

    def _check_options(self) -> None:
        """Check options that depend on each other.

        Raises:
            DefinitionError: They do not fit.
        """
        wrapped = self._strategy == "wrapped"
        written = [*self._written, self._lengths_key, self._positions_key, self._boundaries_key]
        names = [name for name in written if name is not None]
        msg = ""
        if self._drop_last and self._pad is not None:
            msg = "pad_id fills the last sequence and drop_last leaves it out; give one of them"
        elif self._drop_last and not wrapped:
            msg = "drop_last=True needs strategy='wrapped': the others have no last sequence"
        elif self._overflow != "error" and wrapped:
            msg = f"on_overflow={self._overflow!r} is for 'best_fit' and 'none'; 'wrapped' cuts"
        elif self._end and len(self._read) > 1:
            msg = "end_id has no value in the other columns; write the end when you encode texts"
        elif len(set(names)) < len(names):
            msg = f"two columns have one name; each of {', '.join(names)} must differ"
        if msg:
            raise DefinitionError(msg)

    def open(self, context: OperatorContext) -> None:
        self._context = context

    @override
    def __dataops_decode__(self, line: bytes) -> Record:
        return self._decoded(line)

    def forward_window(self, records: list[Record]) -> list[Record]:
        rows: list[Any] = [[record.get(column) for column in self._read] for record in records]
        raw = [type(value) is RawIntegers for row in rows for value in row]
        if all(raw) and self._fits(rows):
            return self._raw_window(rows)
        if any(raw):
            records = [_parsed(record) for record in records]
        try:
            return self._window(records, self._lists)
        except _NoIntegersError:
            return self._window(records, self._integer_lists)

    def _window(self, records: list[Record], read: Callable[[Record], Lists]) -> list[Record]:
        """Return the packs of a window; ``read`` returns the values of a record."""
        if self._strategy == "wrapped":
            return self._wrapped([read(record) for record in records])
        window = PackedWindow()
        window.failed, window.unused = {}, set()
        sequences: list[Lists] = []
        cut = 0
        for place, record in enumerate(records):
            try:
                lists = read(record)
                pieces = self._pieces(lists)
            except UnfitRecordError as error:
                window.failed[place] = error
                continue
            sequences += pieces
            cut += len(lists[0]) - sum(len(piece[0]) for piece in pieces)
            if not pieces:
                window.unused.add(place)
        window += self._packs(sequences)
        self._count(sum(len(sequence[0]) for sequence in sequences), len(window), cut)
        return window

    def _fits(self, rows: list[list[RawIntegers]]) -> bool:
        """Return whether the columns of each record have one length, which a pack can hold."""
        most = self._length - len(self._end)
        return all(
            first.length <= most and all(other.length == first.length for other in others)
            for first, *others in rows
        )

    def _raw_window(self, rows: list[list[RawIntegers]]) -> PackedWindow:
        """Return the packs of documents that are not parsed and not longer than a pack."""
        if self._end:
            rows = [[ids.followed_by(self._end)] for (ids,) in rows]
        window = PackedWindow()
        window.failed = {}
        window.unused = {place for place, row in enumerate(rows) if not row[0].length}
        sequences = [row for row in rows if row[0].length]
        lengths = [row[0].length for row in sequences]
        window += [
            self._raw_pack([sequences[place] for place in places]) for places in self._plan(lengths)
        ]
        self._count(sum(lengths), len(window), 0)
        return window

    def _raw_pack(self, members: list[list[RawIntegers]]) -> Record:
        """Return the record of a pack."""
        lengths = [member[0].length for member in members]
        columns = [list(column) for column in zip(*members, strict=True)]
        for label in self._masked:
            first, *others = columns[label]
            columns[label] = [first, *(other.without_first_label() for other in others)]
        missing = 0 if self._pad is None else self._length - sum(lengths)
        values = [
            joined(column).followed_by([self._filler(at)] * missing).fragment()
            for at, column in enumerate(columns)
        ]
        return dict(zip(self._written, values, strict=True)) | self._places(lengths, missing)

    def _wrapped(self, documents: list[Lists]) -> list[Record]:
        """Return the joined documents, cut every ``max_tokens``."""
        most = self._length
        joined = [_joined(document[at] for document in documents) for at in range(len(self._read))]
        packs = [
            self._pack([column[start : start + most] for column in joined], lengths)
            for start, lengths in zip(
                range(0, len(joined[0]), most),
                wrapped_lengths((len(document[0]) for document in documents), most),
                strict=True,
            )
        ]
        if self._drop_last and len(joined[0]) % most:
            packs.pop()
        return packs

    def _pieces(self, lists: Lists) -> list[Lists]:
        """Return the sequences of a document: itself, its first tokens, or pieces; none if empty.

        Raises:
            UnfitRecordError: The document is too long.
        """
        length, most = len(lists[0]), self._length
        if length <= most:
            return [lists] if length else []
        if self._overflow == "error":
            msg = (
                f"column {self._read[0]!r} has {length:,} tokens, and a sequence {most:,}; give "
                "on_overflow='cut' or 'split', or drop longer records before"
            )
            raise UnfitRecordError(msg)
        pieces = pieces_of(length, most)
        chosen = pieces if self._overflow == "split" else pieces[:1]
        return [tuple(column[piece] for column in lists) for piece in chosen]

    def _packs(self, sequences: list[Lists]) -> list[Record]:
        """Return the packs of sequences, none of which is longer than a pack."""
        lengths = [len(sequence[0]) for sequence in sequences]
        packs = []
        for places in self._plan(lengths):
            members = [sequences[place] for place in places]
            joined = [_joined(column) for column in zip(*members, strict=True)]
            packs.append(self._pack(joined, [lengths[place] for place in places]))
        return packs

    def _plan(self, lengths: list[int]) -> Iterable[list[int]]:
        """Return for each pack the indices of its sequences, which have these lengths."""
        if self._strategy == "best_fit":
            return best_fit(lengths, self._length)
        return ([place] for place in range(len(lengths)))

    def _pack(self, columns: list[list[Any]], lengths: list[int]) -> Record:
        """Return the record of a pack.

        Args:
            columns: The values of the pack; the lists are changed.
            lengths: The lengths of its sequences.

        Raises:
            _NoIntegersError: A value is no integer.
        """
        # Checked here and not when read: it takes a third less, with the values in the CPU cache.
        if not all(map(_are_integers, columns)):
            raise _NoIntegersError
        for label in self._masked:
            for start in accumulate(lengths[:-1]):
                columns[label][start] = NOT_TRAINED
        missing = 0 if self._pad is None else self._length - len(columns[0])
        for at, column in enumerate(columns):
            column.extend([self._filler(at)] * missing)
        return dict(zip(self._written, columns, strict=True)) | self._places(lengths, missing)

    def _filler(self, at: int) -> int:
        """Return the value that fills the column of a number."""
        if not at:
            return self._pad or 0
        return NOT_TRAINED if at in self._labels else 0

    def _places(self, lengths: list[int], missing: int) -> Record:
        """Return the columns of lengths, boundaries and positions; ``missing`` ids are padding."""
        places: dict[str, Any] = {}
        if self._lengths_key is not None:
            places[self._lengths_key] = lengths
        if self._boundaries_key is not None:
            places[self._boundaries_key] = [0, *accumulate(lengths)]
        if self._positions_key is not None:
            parts = [*lengths, missing]
            places[self._positions_key] = list(chain.from_iterable(map(range, parts)))
        return places

    def _lists(self, record: Record) -> Lists:
        """Return the values of a record by column, with ``end_id`` behind them.

        Raises:
            UnfitRecordError: They are no lists, or their lengths differ.
        """
        columns: list[Any] = [record.get(column) for column in self._read]
        lists = tuple([] if values is None else values for values in columns)
        for column, values in zip(self._read, lists, strict=True):
            if not isinstance(values, list):
                raise _unfit(column)
        if len(set(map(len, lists))) > 1:
            sizes = ", ".join(
                f"{column!r} has {len(values):,}"
                for column, values in zip(self._read, lists, strict=True)
            )
            msg = f"columns that are packed together must have one length: {sizes}"
            raise UnfitRecordError(msg)
        return (lists[0] + self._end,) if self._end else lists

    def _integer_lists(self, record: Record) -> Lists:
        """Return the values of a record by column, after a check that they are integers.

        Raises:
            UnfitRecordError: They are no lists of integers, or their lengths differ.
        """
        lists = self._lists(record)
        for column, values in zip(self._read, lists, strict=True):
            if not _are_integers(values):
                raise _unfit(column)
        return lists

    def _count(self, packed: int, packs: int, cut: int) -> None:
        if self._context is None:
            return
        self._context.count(
            packs=packs,
            packed_tokens=packed,
            unused_tokens=packs * self._length - packed,
            cut_tokens=cut,
        )


def _parsed(record: dict[str, Any]) -> Any:
    return {
        name: value.parsed() if type(value) is RawIntegers else value
        for name, value in record.items()
    }


class _NoIntegersError(Exception):
    """A pack has a value that is no integer."""


def _unfit(column: str) -> UnfitRecordError:
    return UnfitRecordError(f"key {column!r} holds no list of integers; run tokens.Encode first")


def _joined(lists: Iterable[list[Any]]) -> list[Any]:
    return reduce(iconcat, lists, [])  # half the time of `chain`


def _columns(columns: Sequence[str] | None, input_key: str, output_key: str) -> tuple[str, ...]:
    """Return the columns that are read."""
    if columns is None:
        return (input_key,)
    if isinstance(columns, str) or not columns:
        msg = f"columns is {columns!r}; it must be a list of columns, such as ['input_ids']"
        raise DefinitionError(msg)
    if (input_key, output_key) != (_COLUMN, _COLUMN):
        msg = "columns are read and written; leave out input_key and output_key"
        raise DefinitionError(msg)
    return tuple(columns)


def _are_integers(values: list[Any]) -> bool:
    """Return whether all values are integers of JSON; three times as fast as a loop over types."""
    try:
        return orjson.dumps(values).translate(None, _DIGITS) == b"[]"
    except TypeError:  # no value of JSON, or beyond 64 bits
        return False
