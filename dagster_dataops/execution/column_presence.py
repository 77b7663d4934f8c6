"""Check that some record of each input has the columns that an operator reads.

The input is read before the operator is called, up to the first record that has them: usually one
record. Only a column that no record has, or none but as ``null``, takes the whole input.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.lines import content_interval, iterate_lines
from dagster_dataops.errors import AbsentColumnError, RunStoppedError
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.execution.node_attempt import NodeAttempt
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.definition.spec import Invocation
from dagster_dataops.operators.options.read_columns import ReadKey, texts_in
from dagster_dataops.operators.options.settings import ALLOWED
from dagster_dataops.operators.options.signature import nearest
from dagster_dataops.operators.outcomes.column_watch import MISSING_TABLE, columns_seen, never_found
from dagster_dataops.operators.outcomes.record_context import count_tables
from dagster_dataops.records import Record, decode

_SAMPLED: Final = 1000  # records whose columns are named
_MOST_NAMED: Final = 20
_MOST_KNOWN: Final = 10_000
_LOOK_AT_STOP: Final = 4096  # lines
_MOST_NULL: Final = 100_000  # records that are read to find a value that is not null
_UNESCAPED: Final = r"(?a)[\w .-]*"  # keys that JSON escapes as \u alone
_REMEDY: Final = "Name another column in the option, or allow this by _missing='allow'"


def check_presence(attempt: NodeAttempt) -> None:
    """Check that the inputs have the columns that the operator reads.

    Raises:
        AbsentColumnError: No record of an input has one of them.
        RunStoppedError: A stop was requested.
    """
    use = attempt.operator.__dataops__
    if attempt.settings.missing == ALLOWED:
        return
    for number, dataset in enumerate(attempt.inputs):
        needed, asked = use.keys_read(number), use.keys_read(number, optional=True)
        look = _look(attempt, dataset, [*needed, *asked])
        if look.records:
            _check_input(attempt, use, dataset, look, needed)


def warn_of_missing(attempt: NodeAttempt, manifest: Manifest) -> None:
    """Warn of each column that some records lacked."""
    for key, number in count_tables(manifest.counts).get(MISSING_TABLE, {}).items():
        attempt.warn(lacking_text(key, int(number), manifest.rows_in))


def lacking_text(key: str, number: int, records: int) -> str:
    """Return how many of how many records lack a column.

    Args:
        key: The key; of a chain with the name of the part before it.
        number: How many lack it.
        records: How many there are.
    """
    lack = "lack" if number != 1 else "lacks"
    return f"{number:,} of {counted(records, 'records')} {lack} the column {key!r}"


def _look(attempt: NodeAttempt, dataset: JsonlDataset, keys: Sequence[ReadKey]) -> "_Look":
    """Return what was found in an input, which is read up to the record that has the last key."""
    look = _Look(keys)
    if not keys:
        return look
    with opened(dataset.location) as source:
        for number, line in enumerate(iterate_lines(source, [content_interval(dataset.location)])):
            if look.complete(line.text):
                break
            reason = attempt.context.should_stop() if number % _LOOK_AT_STOP == 0 else None
            if reason is not None:
                raise RunStoppedError(attempt.name, reason)
    return look


def _check_input(
    attempt: NodeAttempt,
    use: Invocation,
    dataset: JsonlDataset,
    look: "_Look",
    needed: Sequence[ReadKey],
) -> None:
    for key in look.absent:
        records = f"its {counted(look.records, 'input records')}"
        if len(attempt.inputs) > 1:
            records = f"the {counted(look.records, 'records')} of {dataset.location!s}"
        if key in needed:
            raise absent_column(use, attempt.name, key, records, look.columns)
        attempt.warn(f"none of {records} has column {key.name!r}. {look.columns.near(key)}")
    for key in look.null:
        first = "the first" if look.records >= _MOST_NULL else "all"
        attempt.warn(f"column {key.name!r} is null in {first} {counted(look.records, 'records')}")


class _Look:
    """The keys that were not seen yet.

    Attributes:
        absent: Those that no record had.
        null: Those that records had as ``null`` alone.
        records: Number of records so far.
        columns: The columns of the first of them.
    """

    def __init__(self, keys: Sequence[ReadKey]) -> None:
        self.absent, self.null = list(keys), list[ReadKey]()
        self._texts = [
            (orjson.dumps(key.column), b"\\u" if re.fullmatch(_UNESCAPED, key.column) else b"\\")
            for key in keys
        ]
        self.records = 0
        self.columns = KnownNames()

    def complete(self, line: bytes) -> bool:
        """Take a line; return whether a record has had each key, and not as ``null``."""
        if line.isspace():
            return False
        sampled = self.records < _SAMPLED
        if not (sampled or any(key in line or escape in line for key, escape in self._texts)):
            self.records += 1
            return False
        try:
            record = decode(line)
        except ValueError:  # it goes to the error file
            return False
        self.records += 1
        if sampled:
            self.columns.add(record)
        self._take(record)
        return not self.absent and (not self.null or self.records >= _MOST_NULL)

    def _take(self, record: Record) -> None:
        keys = [key for key in self.absent if key.is_in(record)]
        for key in keys:
            self.absent.remove(key)
            self.null.append(key)
        self.null = [key for key in self.null if not key.is_in(record) or key.is_null(record)]


class KnownNames:
    """The columns of records, and the keys of the dicts in them as ``column.key``."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._columns: dict[str, None] = {}
        self._below: dict[str, None] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Add the names of a record, up to a number."""
        if len(self._columns) + len(self._below) < _MOST_KNOWN:
            self._columns |= dict.fromkeys(record)
            for column, value in record.items():
                self._below |= {f"{column}.{name}": None for name in _keys_of(value)}

    def near(self, key: ReadKey) -> str:
        """Return the names as a sentence, with the one that a key most likely misspells."""
        inner = [name for name in self._below if key.selector and name.startswith(f"{key.column}.")]
        known = [*inner, *self._columns]
        near = (
            nearest(key.name, known)
            or nearest(key.column, self._columns)
            or next((name for name in self._below if name.endswith(f".{key.name}")), None)
        )
        hint = f" Did you mean {near!r}?" if near else ""
        more = ", ..." if len(known) > _MOST_NAMED else "."
        return f"They have: {', '.join(known[:_MOST_NAMED]) or 'no columns'}{more}{hint}"


def absent_column(
    use: Invocation, operator: str, key: ReadKey, records: str, known: KnownNames
) -> AbsentColumnError:
    """Return the error about a key that no record has."""
    named = _option_with(key.name, use.options)
    usual = {option.name: option.default for option in use.spec.options}
    if named in usual and usual[named] == use.options[named]:
        named = f"the default of {named}"
    column = f"column {key.name!r}{f' ({named})' if named else ''}"
    return AbsentColumnError(operator, column, records, f"{known.near(key)} {_REMEDY}")


def _option_with(key: str, options: Mapping[str, Any]) -> str:
    """Return the name of the option that names a key, perhaps beside others; empty if none does."""
    from dagster_dataops.operators.chains.chain import ChainOptions  # for the error alone

    for name, value in options.items():
        if isinstance(options, ChainOptions):
            inner = _option_with(key, value)
            if inner:
                return f"{inner} of part {name!r}"
        elif any(key in text.split(",") for text in texts_in(value)):
            return name
    return ""


def check_found(sink: CheckpointSink) -> None:
    """Check that some record that came to each part of a chain had the columns that it reads.

    Raises:
        AbsentColumnError: None had one of them, and failures are not the reason.
    """
    parts = sink.attempt.operator.__dataops__.spec.parts
    if not parts:
        return
    for part, name, number in never_found(sink.checkpoint.table.counts):
        part_name, operator = parts[part]
        use = operator.__dataops__
        if sink.attempt.settings.missing == ALLOWED:
            return
        records = f"the {counted(number, 'records')} that came to it"
        key = next(key for key in use.keys_read() if key.name == name)
        where = f"{part_name} of chain {sink.attempt.name}"
        columns = columns_seen(sink.checkpoint.table.counts, part)
        raise absent_column(use, where, key, records, KnownNames([dict.fromkeys(columns)]))


def _keys_of(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return [name for item in value if isinstance(item, dict) for name in item]
    return ()
