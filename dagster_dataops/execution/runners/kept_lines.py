"""Make the lines of the result of a selection from lines of its input and their verdicts.

Lines that this package wrote are copied as bytes; other lines are encoded like results, many at a
time. An operator with ``change`` makes new lines of the records whose verdict is no bool.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, compress, filterfalse
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import orjson

from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.datasets.lines import Interval, line_blocks, read_lines, split_lines
from dagster_dataops.errors import UnencodableError
from dagster_dataops.foundation.places.range_source import Readable
from dagster_dataops.operators.outcomes.dispositions import USUAL, Disposition, dropped_for
from dagster_dataops.operators.outcomes.return_contract import ContractError, encode_outcome
from dagster_dataops.records import Record, decode, encode

if TYPE_CHECKING:
    from array import array

_BOOLS: Final = frozenset({bool})
_BLOCK_BYTES: Final = 256 << 10  # bytes; small enough for the processor's cache

Change: TypeAlias = Callable[[Record, Any], Any]
Call: TypeAlias = Callable[..., Any]


def called(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call code of the operator."""
    return function(*arguments)


class ResultBlock(NamedTuple):
    """A block of the input and its result."""

    span: Span  # of its records that did not fail
    output: bytes
    notes: SpanNotes | None


class KeptLines:
    """Makes the lines of the result.

    Args:
        ours: Whether this package wrote the input.
        change: ``change`` of the operator; ``None`` if all verdicts are bools.
        call: Calls it.
    """

    def __init__(self, change: Change | None, *, ours: bool, call: Call = called) -> None:
        self._ours, self._change, self._call = ours, change, call

    def blocks(
        self,
        source: Readable,
        interval: Interval,
        failed: "array[int]",
        take: Callable[[int], Sequence[Any]],
    ) -> Iterator[ResultBlock]:
        """Yield each block of an interval of the input, with its result.

        Args:
            source: The open input.
            interval: Whole lines of it.
            failed: The byte positions of the failed records, in rising order.
            take: Returns the next verdicts.
        """
        for start, block in line_blocks(source, interval, _BLOCK_BYTES):
            lines = _sketched(split_lines(block), start, start + len(block), failed)
            if not self._ours:
                lines = list(filterfalse(bytes.isspace, lines))
            text, emitted, notes = self._of(lines, take(len(lines)))
            yield ResultBlock(_span(start, len(block), emitted, text), text, notes)

    def _of(
        self, lines: list[bytes], verdicts: Sequence[Any]
    ) -> tuple[bytes, Sequence[int], SpanNotes | None]:
        """Return the result lines, their number for each line of the input, and notes."""
        if self._change is None or all(map(_BOOLS.__contains__, map(type, verdicts))):
            return (
                self._whole(list(compress(lines, verdicts))),
                verdicts,
                SpanNotes.of_emitted(verdicts),
            )
        whole = [line for line, verdict in zip(lines, verdicts, strict=True) if verdict is True]
        unchanged = iter(split_lines(self._whole(whole)))
        pairs = [
            self._of_line(line, verdict, unchanged)
            for line, verdict in zip(lines, verdicts, strict=True)
        ]
        notes = SpanNotes.of(len(pairs), enumerate(map(itemgetter(1), pairs)), {})
        texts = [text for text, _ in pairs]
        return b"".join(texts), [text.count(b"\n") for text in texts], notes

    def _whole(self, lines: list[bytes]) -> bytes:
        """Return lines of the input as lines of the result."""
        return b"".join(lines) if self._ours else _encoded_lines(lines)

    def _of_line(
        self, line: bytes, verdict: object, unchanged: Iterator[bytes]
    ) -> tuple[bytes, Disposition]:
        if verdict is False:
            return b"", dropped_for("")
        if verdict is True:
            return next(unchanged), USUAL
        return self._call(self._changed, decode(line), verdict)  # type: ignore[no-any-return]

    def _changed(self, record: Record, verdict: object) -> tuple[bytes, Disposition]:
        assert self._change is not None  # noqa: S101 - else there are only bools
        try:
            return encode_outcome(self._change(record, verdict), record)
        except UnencodableError as error:
            msg = f"change returned a record that cannot be written: {error}"
            raise ContractError(msg) from None


def placed_lines(
    source: Readable, span: Span, failed: "array[int]"
) -> Callable[[], list[tuple[int, bytes]]]:
    """Return a function that returns byte position and line of each record of a block.

    Args:
        source: The open input.
        span: Of the block.
        failed: The byte positions of the failed records, which are left out, in rising order.
    """
    return partial(_placed, source, span, failed)


def _placed(source: Readable, span: Span, failed: "array[int]") -> list[tuple[int, bytes]]:
    end = span.start + span.length
    lines = split_lines(read_lines(source, Interval(span.start, end)))
    without = _failed_in(span.start, end, failed)
    positions = accumulate(map(len, lines), initial=span.start)
    placed = zip(positions, lines, strict=False)
    return [(at, line) for at, line in placed if at not in without and not line.isspace()]


def _span(start: int, length: int, emitted: Sequence[int], output: bytes) -> Span:
    return Span(
        start=start,
        length=length,
        records=len(emitted),
        emitted=sum(emitted),
        dropped=emitted.count(0),
        output_bytes=len(output),
    )


def _sketched(lines: list[bytes], start: int, end: int, failed: "array[int]") -> list[bytes]:
    """Return the lines of [start, end) without those of failed records."""
    without = _failed_in(start, end, failed)
    if not without:
        return lines
    positions = accumulate(map(len, lines), initial=start)
    return [line for line, at in zip(lines, positions, strict=False) if at not in without]


def _failed_in(start: int, end: int, failed: "array[int]") -> set[int]:
    return set(failed[bisect_left(failed, start) : bisect_left(failed, end)])


def _encoded_lines(lines: list[bytes]) -> bytes:
    """Return lines as results are written.

    They are decoded together, which takes half the time. If they are then encoded to the same
    bytes, results are written as they are.
    """
    text = b"".join(lines).removesuffix(b"\n")
    together = b"[%b]" % text.replace(b"\n", b",")
    encoded = bytearray()  # one growing buffer: orjson allocates 1 KB or more for each result
    try:
        records = orjson.loads(together)
        if lines and encode(records[0]) == lines[0] and orjson.dumps(records) == together:
            return text + b"\n"
        for record in records:
            encoded += encode(record)
    except (orjson.JSONDecodeError, TypeError, UnencodableError):  # such as one that is nested deep
        encoded.clear()
        for line in lines:
            encoded += _encoded(line)
    return bytes(encoded)


def _encoded(line: bytes) -> bytes:
    try:
        return encode(decode(line))
    except UnencodableError:  # nested too deep for the encoder; keep its bytes
        return line.strip() + b"\n"
