"""The return-value contract of record operators."""

from typing import Any, Final, NamedTuple

from dagster_dataops.errors import UnencodableError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.outcomes.dispositions import (
    USUAL,
    Disposition,
    dropped_for,
    emitting,
)
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record, ValueKeeper, encode

_LONGEST_REASON: Final = 100
# The attribute of an exception of a chain: name of the part that failed, disposition of the record.
FAILED_PART: Final = "__dataops_failed_part__"


class ContractError(TypeError):
    """``forward`` returned a value that the contract does not allow."""


class Disposed(NamedTuple):
    """Records together with the disposition of the record that they were made of.

    A chain and an operator with named outputs return it: they know more than the number of records.
    """

    records: list[Record]
    disposition: Disposition


def encode_outcome(
    returned: object, record: Record, keeper: ValueKeeper | None = None
) -> tuple[bytes, Disposition]:
    """Return the result lines for the return value of ``forward``, and the disposition.

    Args:
        returned: ``None`` keeps ``record`` as ``forward`` left it, a dict replaces it, a list of
            dicts replaces it by these records in this order, the empty list drops it, and a `Drop`
            drops it for a reason.
        record: The record that was passed to ``forward``.
        keeper: Keeps values that JSON cannot hold.

    Returns:
        One line per record, no bytes for a dropped record; the disposition.

    Raises:
        ContractError: ``returned`` is none of these.
        UnencodableError: JSON cannot hold a record.
    """
    if isinstance(returned, dict):
        return encode(returned, keeper), USUAL
    if returned is None:
        return encode(record, keeper), USUAL
    if isinstance(returned, Disposed):
        try:
            return _lines(returned.records, keeper), returned.disposition
        except UnencodableError as error:
            setattr(error, FAILED_PART, ("", returned.disposition))
            raise
    records, reason = emitted(returned, record)
    lines = _lines(records, keeper)
    return lines, emitting(len(records)) if reason is None else dropped_for(reason)


def _lines(records: list[Record], keeper: ValueKeeper | None) -> bytes:
    return b"".join([encode(record, keeper) for record in records])


def emitted(returned: object, record: Record) -> tuple[list[Record], str | None]:
    """Return the records that a part of a chain passes on, and why it dropped its record.

    Arguments and errors as `encode_outcome`; the reason is ``None`` if the record was not dropped.
    """
    if returned is None:
        return [record], None
    if isinstance(returned, dict):
        return [returned], None
    if isinstance(returned, list):
        _check_records(returned)
        return returned, None if returned else ""
    if isinstance(returned, Drop):
        return [], _checked_reason(returned.reason)
    msg = (
        f"returned a {type(returned).__name__}; return a dict, a list of dicts, [] or Drop(reason) "
        "to drop the record, or None to keep it"
    )
    raise ContractError(msg)


def checked_batch(returned: object, records: int) -> list[Any]:
    """Return what ``forward_batch`` returned: a list with an element a record.

    Raises:
        ContractError: It is something else.
    """
    if not isinstance(returned, list):
        kind = type(returned).__name__
        msg = f"returned a {kind} for a batch; return a list"
        raise ContractError(msg)
    if len(returned) != records:
        msg = (
            f"returned a list of {len(returned)} for a batch of {counted(records, 'records')}; "
            "return one element a record: a dict, a list of dicts, [], None, or an exception"
        )
        raise ContractError(msg)
    return returned


def _checked_reason(reason: object) -> str:
    """Return the reason of a `Drop`."""
    if isinstance(reason, str) and reason.isprintable() and 0 < len(reason) <= _LONGEST_REASON:
        return reason
    msg = (
        f"returned a Drop whose reason is {str(reason)[:_LONGEST_REASON]!r}; give 1 to "
        f"{_LONGEST_REASON} printable characters, the same for all records dropped for it"
    )
    raise ContractError(msg)


def _check_records(returned: list[Any]) -> None:
    for position, item in enumerate(returned):
        if not isinstance(item, dict):
            kind = type(item).__name__
            msg = f"returned a list whose element {position} is a {kind}, not a dict"
            raise ContractError(msg)
