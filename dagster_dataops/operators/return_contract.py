"""The return-value contract of record operators."""

from typing import Any

from dagster_dataops.records import Record, encode


class ContractError(TypeError):
    """``forward`` returned a value that the contract does not allow."""


class EncodedLines(list[bytes]):
    """Result lines that are encoded already, such as those of named outputs."""


def encode_outcome(returned: object, given: Record) -> bytes:
    """Return the result lines for the return value of ``forward``.

    Args:
        returned: ``None`` keeps ``given`` as ``forward`` left it, a dict replaces it, a list of
            dicts replaces it by these records in this order, the empty list drops it.
        given: The record that was passed to ``forward``.

    Returns:
        One line per record; no bytes for a dropped record.

    Raises:
        ContractError: ``returned`` is none of these.
        UnencodableError: JSON cannot hold a record.
    """
    if isinstance(returned, EncodedLines):
        return b"".join(returned)
    if isinstance(returned, list):
        return b"".join(_lines(returned)) if returned else b""
    if isinstance(returned, dict):
        return encode(returned)
    if returned is None:
        return encode(given)
    kind = type(returned).__name__
    msg = (
        f"returned a {kind}; return a dict, a list of dicts, [] to drop the record, "
        "or None to keep it"
    )
    raise ContractError(msg)


def _lines(returned: list[Any]) -> list[bytes]:
    """Return one line for each record of a list.

    Raises:
        ContractError: An element is no dict.
    """
    lines = []
    for position, item in enumerate(returned):
        if not isinstance(item, dict):
            kind = type(item).__name__
            msg = f"returned a list whose element {position} is a {kind}, not a dict"
            raise ContractError(msg)
        lines.append(encode(item))
    return lines
