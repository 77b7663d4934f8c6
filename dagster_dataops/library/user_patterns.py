"""Regular expressions of users: compile them for one of two engines, and apply them."""

import re
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.option_values import needs_extra

Engine: TypeAlias = Literal["re", "re2"]
"""Python's engine, in which some patterns take exponential time, or re2, which is linear."""

_Result = TypeVar("_Result")


def compiled(
    pattern: Any, engine: Engine = "re", operator: str = "", *, option: str = "pattern"
) -> Any:
    """Return a compiled pattern of ``re`` or ``re2``; errors name operator and option."""
    module = re if engine == "re" else _re2(operator)
    try:
        return module.compile(pattern)
    except (module.error, TypeError) as error:
        msg = f"{option} {pattern!r} is no regular expression: {error}"
        raise DefinitionError(msg) from None


def _re2(operator: str) -> Any:
    with needs_extra(f"{operator} with engine='re2'", "re2"):
        import re2
    return re2


def applied(method: Callable[..., _Result], *arguments: str) -> _Result:
    """Call a method of a compiled pattern and return its result."""
    try:
        return method(*arguments)
    except UnicodeEncodeError as error:
        msg = (
            f"the text has a lone surrogate at character {error.start}, which re2 cannot read; "
            "use text.FixUnicode before, or engine='re'"
        )
        raise ValueError(msg) from None
