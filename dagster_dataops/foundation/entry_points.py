"""What installed packages add, by entry points: operators, readers, exporters and checks.

Names are read from the metadata of the packages. A module is imported when its name is used.
"""

import logging
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from dagster_dataops.errors import EntryPointError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OPERATORS: Final = "dagster_dataops.operators"
"""Groups of operators, each with the module that registers them."""
READERS: Final = "dagster_dataops.readers"
"""Readers, each with its function or class."""
EXPORTERS: Final = "dagster_dataops.exporters"
"""Endings of files, without the first dot, each with a function or class without arguments."""
CHECKS: Final = "dagster_dataops.checks"
"""Checks, each with its function."""

_NAMES: Final = {EXPORTERS: re.compile(r"\w+(\.\w+)*")}
_IDENTIFIER: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_VALUE: Final = re.compile(r"[\w.]+(\s*:\s*[\w.]+)?(\s*\[.*\])?")
_LOG: Final = logging.getLogger("dagster_dataops")


def added(point: str, names: Collection[str]) -> "Mapping[str, EntryPoint]":
    """Return what installed packages add, by name; nothing is imported.

    An entry that cannot be used is left out with a warning: its name is one of this package, or
    not a plain name. Of two packages with one name the first is returned; `load` refuses it.

    Args:
        point: One of the constants of this module.
        names: The names that this package has; they win.
    """
    return _added(point, frozenset(names), tuple(sys.path))


@lru_cache(maxsize=64)
def _added(point: str, names: frozenset[str], path: tuple[str, ...]) -> "Mapping[str, EntryPoint]":
    usable: dict[str, EntryPoint] = {}
    for entry in _declared(point, path):
        if entry.name in names:
            reason = "dagster-dataops has one of this name; take another"
        elif not _NAMES.get(point, _IDENTIFIER).fullmatch(entry.name):
            reason = "the name must be made of ASCII letters, digits and underscores"
        else:
            usable.setdefault(entry.name, entry)
            continue
        _LOG.warning("%s; it is left out", _error(entry, reason))
    return usable


@lru_cache(maxsize=64)
def _declared(point: str, path: tuple[str, ...]) -> "tuple[EntryPoint, ...]":  # noqa: ARG001 - the key of the cache
    from importlib.metadata import entry_points  # a plain run needs none

    try:
        entries = list(entry_points(group=point))
    except Exception:  # noqa: BLE001 - any malformed file of any package
        entries = list(_readable(point))
    return tuple(sorted(entries, key=lambda entry: (entry.name, package_of(entry))))


def _readable(point: str) -> "Iterator[EntryPoint]":
    """Yield the entries of the packages whose list of entry points is not malformed."""
    from importlib.metadata import distributions

    names: set[str] = set()
    for package in distributions():
        name = str(package.metadata["Name"])
        if name in names:  # the first one on the path counts
            continue
        names.add(name)
        try:
            yield from package.entry_points.select(group=point)
        except Exception as error:  # noqa: BLE001 - any malformed file
            text = "the entry points of package %s cannot be read (%s: %s); they are left out"
            _LOG.warning(text, name, type(error).__name__, error)


def load(entry: "EntryPoint") -> Any:
    """Import what an entry names.

    Raises:
        EntryPointError: It is malformed, it cannot be imported, or two packages have an entry of
            this name.
    """
    others = [
        other
        for other in _declared(entry.group, tuple(sys.path))
        if other.name == entry.name and other != entry
    ]
    if others:
        packages = " and ".join(map(package_of, others))
        reason = f"{packages} has one of this name, too; uninstall all but one"
        raise _error(entry, reason)
    if not _VALUE.fullmatch(entry.value):
        raise _error(entry, f"{entry.value!r} is malformed; write 'module' or 'module:name'")
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        reason = f"{entry.value} cannot be imported ({type(error).__name__}: {error})"
        raise _error(entry, reason) from error


def unfit(entry: "EntryPoint", target: object, wanted: str) -> EntryPointError:
    """Return the error for an entry that names the wrong object."""
    kind = "a module" if isinstance(target, type(sys)) else f"of type {type(target).__name__}"
    return _error(entry, f"{entry.value} is {kind}; it must name {wanted}")


def added_names(point: str, names: Collection[str]) -> list[str]:
    """Return the names that installed packages add; see `added`."""
    return sorted(added(point, names))


def added_callable(point: str, name: str, names: Collection[str], wanted: str) -> Any:
    """Return the function or class that an installed package adds under a name.

    Args:
        point: One of the constants of this module.
        name: The name.
        names: The names that this package has.
        wanted: What the entry must name, for errors.

    Returns:
        The function or class; ``None`` if no package adds one of this name.

    Raises:
        EntryPointError: It cannot be imported, or is something else.
    """
    entry = added(point, names).get(name)
    if entry is None:
        return None
    target = load(entry)
    if not callable(target):
        raise unfit(entry, target, wanted)
    return target


def package_of(entry: "EntryPoint") -> str:
    """Return name and version of the package that an entry is of."""
    package = entry.dist
    return "an unknown package" if package is None else f"{package.name} {package.version}"


def _error(entry: "EntryPoint", reason: str) -> EntryPointError:
    return EntryPointError(entry.name, entry.group, package_of(entry), reason)
