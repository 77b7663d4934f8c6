"""The return-value contract of record operators."""

from dagster_dataops.records import Record, encode


class ContractError(TypeError):
    """``forward`` returned something that is no outcome."""


def encode_outcome(returned: object, given: Record) -> bytes:
    """Return the lines that ``forward``'s return value stands for.

    Args:
        returned: ``None`` keeps ``given`` as ``forward`` left it, a dict replaces it, a list of
            dicts replaces it by that many records in that order, the empty list drops it.
        given: The record that was handed to ``forward``.

    Returns:
        As many lines as records; no bytes for a dropped record.

    Raises:
        ContractError: ``returned`` is none of these.
        UnencodableError: A record holds what JSON cannot.
    """
    if isinstance(returned, list):
        return b"".join([_encoded(item, returned) for item in returned])
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


def _encoded(item: object, returned: list[object]) -> bytes:
    if isinstance(item, dict):
        return encode(item)
    position = next(at for at, other in enumerate(returned) if other is item)
    kind = type(item).__name__
    msg = f"returned a list whose element {position} is a {kind}, not a dict"
    raise ContractError(msg)
