"""The functions that declare asset checks, in one list; `dagster_dataops.checks` shows them."""

from collections.abc import Callable
from typing import Final

from dagster_dataops.assets.checks.declared_check import (
    CHECK_KINDS,
    CheckKind,
    DeclaredCheck,
    check_kind,
)
from dagster_dataops.assets.checks.kinds.blend_shares import blend_shares
from dagster_dataops.assets.checks.kinds.json_schema import json_schema
from dagster_dataops.assets.checks.kinds.max_dropped import max_dropped
from dagster_dataops.assets.checks.kinds.missing_aux import missing_aux
from dagster_dataops.assets.checks.kinds.no_nulls import no_nulls
from dagster_dataops.assets.checks.kinds.required_columns import required_columns
from dagster_dataops.assets.checks.kinds.row_count import row_count
from dagster_dataops.assets.checks.kinds.trained_tokens import trained_tokens
from dagster_dataops.assets.checks.kinds.unique import unique
from dagster_dataops.foundation.entry_points import (
    CHECKS,
    added,
    added_callable,
    added_names,
    unfit,
)

__all__ = [
    "CHECK_KINDS",
    "DeclaredCheck",
    "blend_shares",
    "check_kind",
    "json_schema",
    "max_dropped",
    "missing_aux",
    "no_nulls",
    "required_columns",
    "row_count",
    "trained_tokens",
    "unique",
]
_OWN: Final = frozenset([*__all__, *CHECK_KINDS])  # before packages add theirs


def added_checks() -> list[str]:
    """Return the names of the checks that installed packages add; their modules stay unimported."""
    return added_names(CHECKS, _OWN)


def added_check(name: str) -> Callable[..., DeclaredCheck] | None:
    """Return the function of a check that an installed package adds; ``None`` without one.

    Raises:
        EntryPointError: It cannot be imported, or is no check of this name.
    """
    wanted = f"a function {name} that is decorated by checks.check_kind"
    check: Callable[..., DeclaredCheck] | None = added_callable(CHECKS, name, _OWN, wanted)
    if check is not None and (name not in CHECK_KINDS or CHECK_KINDS[name].declare is not check):
        raise unfit(added(CHECKS, _OWN)[name], check, wanted)
    return check


def check_kind_named(name: str) -> CheckKind:
    """Return a kind of check, of this package or of an installed one.

    Raises:
        EntryPointError: That of an installed package cannot be used.
    """
    if name not in _OWN:
        added_check(name)
    return CHECK_KINDS[name]


def __dir__() -> list[str]:
    return __all__
