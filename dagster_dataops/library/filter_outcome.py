"""The options ``mode``, ``stats_key`` and ``reason_key`` of operators that judge records."""

from collections.abc import Mapping
from typing import Any, Final

from dagster_dataops.library.option_values import check_choice
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

MODES: Final = ("drop", "tag", "both")
"""The values of the option ``mode``; see `FilterOutcome`."""


class FilterOutcome:
    """Drops a record, or writes the findings about it.

    Mode ``drop`` drops and writes nothing. ``tag`` keeps all records, and writes the signals into
    the dict in ``stats_key`` and the reason, ``None`` for records to keep, into ``reason_key``.
    ``both`` drops, and writes the signals into the kept records.

    Raises:
        DefinitionError: ``mode`` is none of these.
    """

    def __init__(
        self, mode: str, stats_key: str = "stats", reason_key: str = "drop_reason"
    ) -> None:
        check_choice("mode", mode, MODES)
        self.drops, self.tags = mode != "tag", mode != "drop"
        self._stats_key, self._reason_key = stats_key, reason_key

    def of(self, record: Record, reason: str | None, signals: Mapping[str, Any]) -> Any:
        """Return the result of ``forward``: a `Drop`, or the record, which may be changed.

        ``reason`` is ``None`` for a record that is kept; ``signals`` are numbers by name.

        Raises:
            TypeError: ``stats_key`` holds something else.
        """
        if reason is not None and self.drops:
            return Drop(reason)
        if self.tags:
            before = record.get(self._stats_key) or {}
            if not isinstance(before, dict):
                kind = type(before).__name__
                msg = f"key {self._stats_key!r} holds a {kind}, no dict; choose another stats_key"
                raise TypeError(msg)
            record[self._stats_key] = {**before, **signals}
            if not self.drops:
                record[self._reason_key] = reason
        return record
