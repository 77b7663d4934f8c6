"""`Operational`: marks options that affect how work is done but not its result."""

import re
import typing
from typing import Any, Final

_IN_TEXT: Final = r"\bOperational\b"


class Operational:
    """Marks an option that affects how an operator works, but not its result.

    The option is not part of the operator's identity: a new value neither makes the asset stale nor
    discards an unfinished run. Mark a parameter, or all values of a type:

        def grade(record, endpoint: Annotated[str, Operational] = "https://..."): ...

        class Client(Operational): ...
    """

    __slots__ = ()


def is_operational(value: object) -> bool:
    """Return whether the type of a value marks it as operational."""
    return isinstance(value, Operational) or callable(
        getattr(type(value), "get_secret_value", None)
    )


def is_annotated_operational(annotation: Any) -> bool:
    """Return whether an annotation, also as text, marks its parameter as operational."""
    if isinstance(annotation, str):
        return re.search(_IN_TEXT, annotation) is not None
    if isinstance(annotation, type):
        return issubclass(annotation, Operational)
    if Operational in getattr(annotation, "__metadata__", ()):
        return True
    return any(map(is_annotated_operational, typing.get_args(annotation)))
