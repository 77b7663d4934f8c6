"""Check options of operators when they are constructed, and import the packages that they need."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from dagster_dataops.errors import DefinitionError, MissingExtraError


def check_choice(option: str, value: object, allowed: Collection[str]) -> None:
    """Check that an option has one of some values.

    Options that are annotated as ``Literal`` are checked before the constructor.
    """
    if value not in allowed:
        msg = f"{option} is {value!r}; use one of {', '.join(map(repr, allowed))}"
        raise DefinitionError(msg)


@contextmanager
def needs_extra(feature: str, extra: str) -> Iterator[None]:
    """Import packages of an extra in the ``with`` block; errors name the feature and the extra."""
    try:
        yield
    except ImportError:
        raise MissingExtraError(feature, extra) from None
