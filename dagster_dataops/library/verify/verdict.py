"""Write whether a record passed a check, or drop it."""

from typing import Any

from dagster_dataops.data import data_register
from dagster_dataops.library.filter_outcome import MODES
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

verify: Any = data_register.new_group("verify")


class Verdict:
    """Writes the result of a check.

    Mode ``tag`` writes into every record whether it passed (``output_key``), and the reason in
    words, ``None`` if it passed (``error_key``). ``drop`` drops records that failed, and writes
    nothing; ``both`` drops them, and writes into the others.

    Raises:
        DefinitionError: ``mode`` is none of these.
    """

    def __init__(self, mode: str, output_key: str, error_key: str | None) -> None:
        check_choice("mode", mode, MODES)
        self._drops, self._writes = mode != "tag", mode != "drop"
        self._valid, self._error = output_key, error_key

    def of(self, record: Record, reason: str | None, error: str | None = None) -> Any:
        """Return the result of ``forward``: a `Drop`, or the record, which may be changed.

        ``reason`` is ``None`` if the record passed; ``error`` is the fault in words, by default the
        reason.
        """
        if reason is not None and self._drops:
            return Drop(reason)
        if self._writes:
            record[self._valid] = reason is None
            if self._error is not None:
                record[self._error] = None if reason is None else error or reason
        return record
