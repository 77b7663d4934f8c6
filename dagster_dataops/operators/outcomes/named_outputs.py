"""Named outputs: an operator with several results sends each record to one or several of them.

    @data_register("data.demo", outputs=("train", "test"))
    def split(record: dict):
        return To("test") if record["id"] % 10 == 0 else To("train")

The result lines are settled together, in the order in which they are emitted. The disposition of
each record has the outputs of its lines. Publishing writes a file for each output.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from dagster_dataops.datasets.published_files import CHECKPOINTS, PARTITIONS
from dagster_dataops.errors import OperatorDefinitionError
from dagster_dataops.operators.options.signature import nearest
from dagster_dataops.operators.outcomes.dispositions import sending
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.operators.outcomes.return_contract import (
    ContractError,
    Disposed,
    checked_batch,
)
from dagster_dataops.records import Record

_MOST: Final = 64
_FOLDERS: Final = frozenset({CHECKPOINTS, PARTITIONS})  # names of folders in a node's folder


class To(NamedTuple):
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


def routing(outputs: tuple[str, ...], *, batch: bool) -> Callable[[Any, Any], Any]:
    """Return a function from what ``forward`` returned, and was given, to `Disposed`.

    Args:
        outputs: The names of the outputs.
        batch: Whether ``forward`` takes a batch; then each element of its list becomes `Disposed`.
    """
    indices = {name: index for index, name in enumerate(outputs)}
    if not batch:
        return lambda returned, record: disposed(returned, record, indices)

    def route_all(returned: object, records: list[Record]) -> list[Any]:
        elements = zip(checked_batch(returned, len(records)), records, strict=True)
        return [_disposed_or_error(element, record, indices) for element, record in elements]

    return route_all


def _disposed_or_error(returned: object, record: Record, indices: Mapping[str, int]) -> object:
    if isinstance(returned, BaseException):
        return returned
    try:
        return disposed(returned, record, indices)
    except ContractError as error:  # of this record alone
        return error


def disposed(returned: object, source: Record, indices: Mapping[str, int]) -> Disposed | Drop:
    """Return the records that a returned value sends, with the disposition of the given record.

    Args:
        returned: One `To`, or a list of them; the empty list or a `Drop` drops the record.
        source: The record that was passed to ``forward``.
        indices: The index of each output.

    Raises:
        ContractError: ``returned`` is none of these, or names an unknown output.
    """
    if type(returned) is To:
        record = _record(returned, source, indices)
        return Disposed([record], sending(indices[returned.output]))
    if isinstance(returned, Drop):
        return returned
    if isinstance(returned, list) and all(type(sent) is To for sent in returned):
        records = [_record(sent, source, indices) for sent in returned]
        return Disposed(records, sending(*(indices[sent.output] for sent in returned)))
    names = list(indices)
    problem = "None" if returned is None else f"a {type(returned).__name__}"
    if isinstance(returned, list):
        other = next(sent for sent in returned if type(sent) is not To)
        problem = f"a list with a {type(other).__name__}"
    msg = (
        f"returned {problem}; the operator has the outputs {', '.join(names)}: return "
        f"To({names[0]!r}), To({names[0]!r}, record), a list of these, or [] to drop the record"
    )
    raise ContractError(msg)


def _record(sent: To, source: Record, indices: Mapping[str, int]) -> Record:
    if sent.output not in indices:
        near = nearest(str(sent.output), indices)
        hint = f"; did you mean {near!r}?" if near else ""
        msg = f"sent a record to {sent.output!r}; its outputs are {', '.join(indices)}{hint}"
        raise ContractError(msg)
    record: object = source if sent.record is None else sent.record
    if not isinstance(record, dict):
        kind = type(record).__name__
        msg = f"sent a {kind} to {sent.output!r}; send a dict"
        raise ContractError(msg)
    return record
