"""`copied_service`: the copy of a reading service with which a loader reads.

What the service holds is copied by pickle. Functions, classes and modules are not copied, also if a
script or a notebook defines them: so the methods of the copy read and write the same globals.
"""

import io
import pickle
import types
from typing import Any

import cloudpickle

from dagster_dataops.errors import StreamArgumentError
from dagster_dataops.foundation.override import override
from dagster_dataops.records import text_of

_SHARED = (types.FunctionType, types.ModuleType, type)


class _ServicePickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles a value, and keeps the code that the copy shares with it as ``shared``."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.shared: list[object] = []

    def persistent_id(self, value: object) -> int | None:
        """Return the number of a function, class or module."""
        if not isinstance(value, _SHARED):
            return None
        self.shared.append(value)
        return len(self.shared) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, shared: list[object]) -> None:
        super().__init__(file)
        self._shared = shared

    @override
    def persistent_load(self, number: int) -> object:
        return self._shared[number]


def _copied(value: Any) -> Any:
    with io.BytesIO() as file:
        pickler = _ServicePickler(file)
        pickler.dump(value)
        file.seek(0)
        return _Unpickler(file, pickler.shared).load()


def copied_service(service: Any) -> Any:
    """Return a copy of a service."""
    try:
        return _copied(service)
    except Exception as error:
        name = type(service).__name__
        reason = (
            f"{name} cannot be pickled{_fault(service)} ({text_of(error)}). The loader reads with "
            "a copy of the service, made by pickle: create it in initialize(), not in __init__()"
        )
        raise StreamArgumentError("DataLoader2, reading_service", reason) from error


def _fault(service: Any) -> str:
    """Return a clause that names the attribute that cannot be pickled."""
    if isinstance(service, tuple):  # those of SequentialReadingService
        held = next(filter(_is_at_fault, service), None)
        return f", which holds a {type(held).__name__}{_fault(held)}"
    for name, value in getattr(service, "__dict__", {}).items():
        if _is_at_fault(value):
            more = _fault(value) if isinstance(value, tuple) else ""
            return f": its attribute {name!r} is a {type(value).__name__}{more}"
    return ""


def _is_at_fault(value: object) -> bool:
    try:
        _copied(value)
    except Exception:  # noqa: BLE001 - objects raise anything here
        return True
    return False
