"""Check options of operators when they are constructed, and import the packages that they need."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from dagster_dataops.errors import DefinitionError, MissingExtraError


def check_choice(option: str, value: object, allowed: Collection[str]) -> None:
    """Check that an option has one of some values.

    Options that are annotated as ``Literal`` are checked before the constructor.

    Raises:
        DefinitionError: It has another value.
    """
    if value not in allowed:
        msg = f"{option} is {value!r}; use one of {', '.join(map(repr, allowed))}"
        raise DefinitionError(msg)


@contextmanager
def needs_extra(feature: str, extra: str) -> Iterator[None]:
    """Import packages of an extra in the ``with`` block; the error names the feature and the extra.

    Raises:
        MissingExtraError: One is not installed.
    """
    try:
        yield
    except ImportError:
        raise MissingExtraError(feature, extra) from None
