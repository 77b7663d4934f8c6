"""Operational: marks values that say how work is done and not what is done."""

import re
import typing
from typing import Any, Final

_WRITTEN: Final = re.compile(r"\bOperational\b")


class Operational:
    """Marks an option that says how an operator works and not what it computes.

    Such an option is no part of the operator's identity: another value neither makes its asset
    stale nor starts an unfinished run afresh. Mark a parameter, or every value of a type:

        def grade(record, endpoint: Annotated[str, Operational] = "https://..."): ...

        class Client(Operational): ...
    """

    __slots__ = ()


def is_operational(value: object) -> bool:
    """Whether a value declares itself operational, by its type."""
    return isinstance(value, Operational) or callable(getattr(value, "get_secret_value", None))


def is_marked(annotation: Any) -> bool:
    """Whether an annotation marks its parameter; also one that is still text."""
    if isinstance(annotation, str):
        return _WRITTEN.search(annotation) is not None
    if isinstance(annotation, type):
        return issubclass(annotation, Operational)
    if Operational in getattr(annotation, "__metadata__", ()):
        return True
    return any(map(is_marked, typing.get_args(annotation)))
