"""Tell when an operator has changed no record.

The draft of the result is compared with the input, up to the first record that differs: usually one.
So the loops over records pay nothing for it.
"""

import dis
import inspect
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import orjson

from dagster_dataops.byte_ranges import opened
from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.datasets.lines import content_interval, iterate_lines
from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.operators.chains.chain import Chain
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.quantities import counted

_WRITTEN: Final = "output_key"  # the option of operators of the library that write a column
_SELECTING: Final = {"filters", "sample"}  # groups of the library that keep records as they are
_MOST_DECODED: Final = 1_000_000  # lines that differ as bytes, of files of other programs


def note_if_unchanged(attempt: Attempt, manifest: Manifest) -> None:
    """Note, before it is published, that each record of the result is as it was in the input, if the operator may change it.

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
    if isinstance(operator, Chain):
        return any(_may_change(part) for _, part in operator.parts)
    spec = operator.__dataops__.spec
    if spec.kind != "record" or spec.outputs:
        return False
    if not spec.shipped:
        return True
    return spec.group not in _SELECTING and any(one.name == _WRITTEN for one in spec.options)


def _is_unchanged(attempt: Attempt, manifest: Manifest) -> bool:
    (source,) = attempt.inputs
    if source.fingerprint and source.fingerprint == manifest.fingerprint:
        return True
    draft = draft_of(attempt.folder.result)
    if manifest.parted or not draft.exists():
        return False
    skips, decoded = manifest.failed, 0
    given = _lines(source.path)
    for line in _lines(draft):
        before = next(given, None)
        while before is not None and before != line:
            decoded += 1
            if decoded > _MOST_DECODED:  # not known without reading much more
                return False
            if _decoded(before) == orjson.loads(line):
                break
            if not skips:
                return False
            skips -= 1  # perhaps a record that failed
            before = next(given, None)
        if before is None:
            return False
    return True


def _lines(path: Path) -> Iterator[bytes]:
    with opened(path) as source:
        for line in iterate_lines(source, [content_interval(path)]):
            if not line.text.isspace():
                yield line.text.rstrip()


def _decoded(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def returns_nothing(operator: Operator) -> bool:
    """Return whether the code of an operator's function has no ``return`` with a value."""
    spec = operator.__dataops__.spec
    target = spec.target
    function = getattr(target, spec.method, None) if isinstance(target, type) else target
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    if code is None or inspect.isgeneratorfunction(function):
        return False
    steps = [one for one in dis.get_instructions(code) if one.opname != "NOP"]
    return not any(_returns_value(before, step) for before, step in pairwise(steps))


def _returns_value(before: dis.Instruction, step: dis.Instruction) -> bool:
    """Return whether an instruction returns anything but the constant ``None``."""
    if step.opname == "RETURN_CONST":
        return step.argval is not None
    return step.opname == "RETURN_VALUE" and not (
        before.opname == "LOAD_CONST" and before.argval is None
    )
