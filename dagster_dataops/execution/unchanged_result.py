"""Tell when an operator has changed no record.

The draft of the result is compared with the input, up to the first record that differs: usually
one. So the loops over records pay nothing for it.
"""

import dis
import inspect
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Final

import orjson

from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.datasets.lines import content_interval, iterate_lines
from dagster_dataops.execution.node_attempt import NodeAttempt
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.kinds.kind import RecordOrigin

# Operators of the library that only drop records are in these groups, or have this option, unless
# they write a column as well.
_SELECTING: Final = {"decontaminate", "dedup", "filters", "join", "sample"}
_REASON: Final = "reason_key"
_WRITTEN: Final = "output_key"
_MOST_COMPARED: Final = 5_000_000  # lines; in longer inputs of other programs it is not known


def note_if_unchanged(attempt: NodeAttempt, manifest: Manifest) -> None:
    """Note, before a result is published, that each of its records is as it was in the input.

    Operators that only drop records, and those that take whole datasets, are not looked at.
    """
    records = manifest.rows_in - manifest.failed
    if not records or manifest.rows_out != records or manifest.dropped or manifest.outputs:
        return
    if not _may_change(attempt.operator) or not _is_unchanged(attempt, manifest):
        return
    forgotten = "; its function returns nothing: is a `return` missing?"
    hint = forgotten if returns_nothing(attempt.operator) else ""
    attempt.note(f"changed 0 of {counted(records, 'records')}{hint}")


def _may_change(operator: Operator) -> bool:
    """Return whether an operator is there to change records, as far as is known."""
    spec = operator.__dataops__.spec
    if spec.parts:
        return any(_may_change(part) for _, part in spec.parts)
    if spec.origin is not RecordOrigin.EACH or spec.outputs:
        return False
    if not spec.shipped:
        return True
    options = {option.name for option in spec.options}
    selecting = spec.group in _SELECTING or _REASON in options or spec.name.endswith("Filter")
    return not selecting or (_WRITTEN in options and spec.group not in _SELECTING)


def _is_unchanged(attempt: NodeAttempt, manifest: Manifest) -> bool:
    """Return whether the draft is the input without ``manifest.failed`` of its records."""
    (source,) = attempt.inputs
    if source.fingerprint and source.fingerprint == manifest.fingerprint:
        return True
    draft = attempt.lock.draft(attempt.folder.result)
    if draft is None:
        return False
    inputs = islice(_lines(source.location), _MOST_COMPARED)
    skipped = 0
    for line in _lines(draft):
        while (before := next(inputs, None)) is not None and not _is_same(before, line):
            skipped += 1  # a record that failed, or one that was changed
            if skipped > manifest.failed:
                return False
        if before is None:
            return False
    return True


def _is_same(before: bytes, line: bytes) -> bool:
    """Return whether a line of the input, perhaps of another program, is a line of the result."""
    try:
        return before == line or orjson.dumps(orjson.loads(before)) == line
    except (orjson.JSONDecodeError, TypeError):
        return False


def _lines(location: Location) -> Iterator[bytes]:
    with storage(location, "compare the result with the input"), opened(location) as source:
        for line in iterate_lines(source, [content_interval(location)]):
            if not line.text.isspace():
                yield line.text.rstrip()


def returns_nothing(operator: Operator) -> bool:
    """Return whether the code of an operator's function has no ``return`` with a value."""
    spec = operator.__dataops__.spec
    target = spec.target
    function = getattr(target, spec.method, None) if isinstance(target, type) else target
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    if code is None or inspect.isgeneratorfunction(function):
        return False
    steps = [
        instruction for instruction in dis.get_instructions(code) if instruction.opname != "NOP"
    ]
    return not any(_returns_value(before, step) for before, step in pairwise(steps))


def _returns_value(before: dis.Instruction, step: dis.Instruction) -> bool:
    """Return whether an instruction returns anything but the constant ``None``."""
    if step.opname == "RETURN_CONST":
        return step.argval is not None
    return step.opname == "RETURN_VALUE" and not (
        before.opname == "LOAD_CONST" and before.argval is None
    )
