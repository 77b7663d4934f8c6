"""Named outputs: an operator with several results sends each record to one or several of them.

    @data_register("data.demo", outputs=("train", "test"))
    def split(record: dict):
        return To("test") if record["id"] % 10 == 0 else To("train")

All result lines of the operator are settled in one segment. The first byte of a line is a tag: it
says to which output the line belongs. Publishing removes the tags and writes a file an output.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dagster_dataops.errors import OperatorDefinitionError
from dagster_dataops.operators.return_contract import ContractError, EncodedLines
from dagster_dataops.operators.signature import nearest
from dagster_dataops.records import Record, encode

FIRST_TAG: Final = 0x30  # "0"; the tags of 64 outputs are printable
_MOST: Final = 64
_FOLDERS: Final = frozenset({"checkpoints", "partitions"})  # names of folders in a node's folder


@dataclass(frozen=True, slots=True)
class To:
    """A record for one output of an operator; returned by ``forward``.

    Attributes:
        output: The name of the output.
        record: The record to send; ``None`` sends the given record as ``forward`` left it.
    """

    output: str
    record: dict[str, Any] | None = None


def checked_outputs(operator: str, outputs: object) -> tuple[str, ...]:
    """Return the names of the outputs of an operator.

    Args:
        operator: The name of the operator, for errors.
        outputs: At least two names, in order; each also names a folder and an asset.

    Raises:
        OperatorDefinitionError: These are no valid names.
    """
    if isinstance(outputs, str) or not isinstance(outputs, (list, tuple)):
        reason = f"outputs is {outputs!r}; use a tuple of names such as ('train', 'test')"
        raise OperatorDefinitionError(operator, reason)
    if not 2 <= len(outputs) <= _MOST or len(set(outputs)) < len(outputs):
        reason = f"outputs is {outputs!r}; use 2 to {_MOST} different names"
        raise OperatorDefinitionError(operator, reason)
    for name in outputs:
        if not (isinstance(name, str) and name.isidentifier() and name.isascii()):
            raise OperatorDefinitionError(operator, f"output {name!r} is no plain identifier")
        if name.startswith("_") or name in _FOLDERS or hasattr(str, name):
            reason = f"the output name {name!r} is reserved; choose another"
            raise OperatorDefinitionError(operator, reason)
    return tuple(outputs)


def routed(forward: Callable[[Record], Any], outputs: tuple[str, ...]) -> Callable[[Record], Any]:
    """Return ``forward`` with its returned value as tagged lines, for `encode_outcome`."""
    tags = tags_of(outputs)
    return lambda record: tagged(forward(record), record, tags)


def routed_async(
    forward: Callable[[Record], Any], outputs: tuple[str, ...]
) -> Callable[[Record], Any]:
    """Return a coroutine function with its returned value as tagged lines."""
    tags = tags_of(outputs)

    async def forwarded(record: Record) -> Any:
        return tagged(await forward(record), record, tags)

    return forwarded


def tags_of(outputs: tuple[str, ...]) -> dict[str, bytes]:
    """Return the tag of each output."""
    return {name: bytes([FIRST_TAG + index]) for index, name in enumerate(outputs)}


def tagged(returned: object, given: Record, tags: Mapping[str, bytes]) -> EncodedLines:
    """Return the tagged result lines for a returned value.

    Args:
        returned: One `To`, or a list of them; the empty list drops the record.
        given: The record that was passed to ``forward``.
        tags: The tag of each output.

    Raises:
        ContractError: ``returned`` is neither, or names an unknown output.
        UnencodableError: JSON cannot hold a record.
    """
    if type(returned) is To:
        return EncodedLines([_line(returned, given, tags)])
    if isinstance(returned, list) and all(type(one) is To for one in returned):
        return EncodedLines([_line(one, given, tags) for one in returned])
    names = list(tags)
    found = "None" if returned is None else f"a {type(returned).__name__}"
    if isinstance(returned, list):
        other = next(one for one in returned if type(one) is not To)
        found = f"a list with a {type(other).__name__}"
    msg = (
        f"returned {found}; the operator has the outputs {', '.join(names)}: return "
        f"To({names[0]!r}), To({names[0]!r}, record), a list of these, or [] to drop the record"
    )
    raise ContractError(msg)


def _line(sent: To, given: Record, tags: Mapping[str, bytes]) -> bytes:
    tag = tags.get(sent.output)
    if tag is None:
        near = nearest(str(sent.output), tags)
        hint = f"; did you mean {near!r}?" if near else ""
        msg = f"sent a record to {sent.output!r}; its outputs are {', '.join(tags)}{hint}"
        raise ContractError(msg)
    if sent.record is None:
        return tag + encode(given)
    record: object = sent.record
    if not isinstance(record, dict):
        kind = type(record).__name__
        raise ContractError(f"sent a {kind} to {sent.output!r}; send a dict")
    return tag + encode(record)
