"""Preparation of HTML pages before a library parses them."""

import re
from typing import Any, Final

from dagster_dataops.data import data_register

html: Any = data_register.new_group("html")

_TAG: Final = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
# Elements that are empty, or that the next one ends: they add no level.
_FLAT: Final = frozenset(
    """
    area base br col embed hr img input link meta source track wbr p li dt dd tr td th thead tbody
    tfoot option optgroup rp rt
    """.split()  # noqa: SIM905 - a list of words is easier to read
)
_MANY_TAGS: Final = 5_000  # with fewer tags, deep pages take milliseconds
_DEEPEST: Final = 1_000


def readable(page: str) -> str:
    """Return a page with U+003F in place of lone surrogates, which the libraries cannot read."""
    return page if page.isascii() else page.encode("utf-8", "replace").decode()


def too_deep(operator: str) -> ValueError:
    """Return the error for a page that is nested deeper than a library can process."""
    msg = f"the elements of the page are nested too deeply for {operator}; repair or drop the page"
    return ValueError(msg)


def is_deep(page: str) -> bool:
    """Return whether the elements of a page are nested more than 1,000 levels, by its tags."""
    if page.count("<") < _MANY_TAGS:
        return False
    depth = deepest = 0
    for slash, name in _TAG.findall(page):
        if name.lower() not in _FLAT:
            depth = max(0, depth - 1) if slash else depth + 1
            deepest = max(deepest, depth)
    return deepest > _DEEPEST
