"""`warn_if_unused`: warn about a call such as ``builder.map(f)`` whose result is not used.

Builders are immutable, so such a statement does nothing. In fairseq2, builders change in place. The
statement is recognized by the code of the caller: the next instruction drops the result. Nothing is
known about a result that is used in any way, so no use can be mistaken for a statement.
"""

import dis
import sys
import warnings
from types import FrameType
from typing import Final

from dagster_dataops.errors import UnusedStreamWarning

_PACKAGE: Final = __name__.partition(".")[0]
_DROPPED: Final = dis.opmap.get("POP_TOP")
_CACHE: Final = dis.opmap.get("CACHE", 0)
_STEP: Final = 2  # bytes of an instruction


def warn_if_unused(builders: type) -> None:
    """Warn if the operation that is running is called as a statement.

    Args:
        builders: The class of the builders. The operation is one of its methods.
    """
    unused = _operation(sys._getframe(1), builders)  # noqa: SLF001 - the caller's code is needed
    if unused is None:
        return
    operation, depth = unused
    msg = (
        f"the result of {operation}() is not used: builders are immutable, and operations return "
        f"a new stream, so this line has no effect; write builder = builder.{operation}(...)"
    )
    warnings.warn(msg, UnusedStreamWarning, stacklevel=depth + 3)


def _operation(frame: FrameType, builders: type) -> tuple[str, int] | None:
    """Return the operation that other code called as a statement, and its depth above a frame."""
    called, depth, caller = frame, 0, frame.f_back
    while caller is not None and _is_own(caller):
        called, depth, caller = caller, depth + 1, caller.f_back
    if caller is None or not _drops_result(caller):
        return None
    if not isinstance(called.f_locals.get("self"), builders):
        return None  # a function of the package that builds streams, such as a check
    return called.f_code.co_name, depth


def _is_own(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__")
    return isinstance(name, str) and (name == _PACKAGE or name.startswith(f"{_PACKAGE}."))


def _drops_result(frame: FrameType) -> bool:
    """Return whether a frame drops the result of the call that it is waiting for."""
    code, at = frame.f_code.co_code, frame.f_lasti + _STEP
    while at < len(code) and code[at] == _CACHE:
        at += _STEP
    return at < len(code) and code[at] == _DROPPED
