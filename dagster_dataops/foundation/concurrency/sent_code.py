"""`pickled`: send functions and classes of scripts and notebooks to other processes.

cloudpickle sends their code. From 3.1.3 on it leaves out the names of the files of code, without
which tracebacks show no line of the user's file.
"""

import io
from collections import ChainMap
from collections.abc import Callable
from types import CodeType
from typing import Any, ClassVar, Final

import cloudpickle

_REDUCE: Final = cloudpickle.Pickler.dispatch_table[CodeType]


def _with_file(code: CodeType) -> tuple[Callable[..., CodeType], tuple[Any, ...]]:
    make, arguments = _REDUCE(code)[:2]
    return _code_of_file, (code.co_filename, make, arguments)


def _code_of_file(name: str, make: Callable[..., CodeType], arguments: Any) -> CodeType:
    return make(*arguments).replace(co_filename=name)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    dispatch_table: ClassVar[Any] = ChainMap(
        {CodeType: _with_file}, cloudpickle.Pickler.dispatch_table
    )


def pickled(value: object) -> bytes:
    """Return ``value`` as bytes for `pickle.loads`; code that cannot be imported is in them."""
    with io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()
