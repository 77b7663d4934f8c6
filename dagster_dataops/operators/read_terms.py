"""`terms_of`: the columns that an operator reads, for the outcomes that it keeps."""

from typing import TYPE_CHECKING

from dagster_dataops.operators.options.declared_columns import OBSERVED, is_inherited
from dagster_dataops.operators.options.read_columns import keys_of
from dagster_dataops.operators.outcomes.change_watch import ReadTerms

if TYPE_CHECKING:
    from dagster_dataops.operators.definition.spec import Invocation


def terms_of(use: "Invocation") -> ReadTerms | None:
    """Return the facts about the columns that an operator reads.

    Operators of the library are watched: the columns that they read one by one count. So are
    operators with ``reads="observed"``; they get no dict that code in C could read unseen. If an
    operator declares other ``reads``, these count, and further ones that it reads one by one.

    Returns:
        The facts; ``None`` if the whole record counts: for an operator that declares nothing or
        returns records for whole windows, and for a chain with such a part.
    """
    if use.spec.by_window:
        return None
    return _of_chain(use.uses) if use.spec.parts else _of_operator(use)


def _of_operator(use: "Invocation") -> ReadTerms | None:
    declared, columns = use.spec.declared, _declared(use)
    if declared.reads == OBSERVED:
        return ReadTerms(shielded=True)
    if use.spec.shipped:
        return ReadTerms(columns, shielded=any(map(callable, use.options.values())))
    if declared.reads is None or is_inherited(declared.reads) or "" in columns:
        return None
    return ReadTerms(columns, trusted=True, adds=declared.writes is not None)


def _declared(use: "Invocation") -> frozenset[str]:
    """Return the columns that an operator declares; an empty text for an unknown one."""
    keys = [key for optional in (False, True) for key in keys_of(use.names_read, optional=optional)]
    return frozenset(name for key in keys for name in (key.name, key.column))


def _of_chain(uses: "list[Invocation]") -> ReadTerms | None:
    terms = [terms_of(use) for use in uses]
    known = [part for part in terms if part is not None]
    if len(known) < len(terms):
        return None
    columns = frozenset(name for part in known for name in part.columns)
    return ReadTerms(columns, shielded=any(part.shielded for part in known))
