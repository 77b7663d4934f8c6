"""Find the origin of code: the user's project, an installed distribution, or Python itself."""

import functools
import os
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Final, NamedTuple

_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_PACKAGE: Final = "dagster_dataops"
# The interface of operators. It does not change their results.
_CONTRACT: Final = (f"{_PACKAGE}.operators", f"{_PACKAGE}.data")


class ProjectScope(NamedTuple):
    """The code that is digested even if it is installed: some packages, and one module."""

    packages: tuple[str, ...] = ()
    module: str = ""

    @classmethod
    def of_package(cls, module: str) -> "ProjectScope":
        """Return the top-level package of ``module``, with the others of its distribution."""
        top = module.partition(".")[0]
        if top == _PACKAGE:
            return cls((), module)
        installed = top != "__main__" and _is_installed(_file_of(top))
        return cls((top, *_sibling_packages(top)) if installed else (top,))

    def origin(self, module: str) -> str | None:
        """Return the origin of a module: ``python``, or its distributions with their versions.

        ``None`` means that the module belongs to the project and counts by its code.
        """
        top = module.partition(".")[0]
        if not top or top == "__main__":
            return None
        file = _file_of(module)
        if _is_standard(top, file):
            return "python"
        if module == self.module or top in self.packages:
            return None
        if top == _PACKAGE:
            return _PACKAGE if module.startswith(_CONTRACT) else _versions(top)
        exists = module in sys.modules or module_spec(module) is not None
        return _versions(top) if _is_installed(file) or not exists else None


def module_spec(name: str) -> ModuleSpec | None:
    """Return the spec of a module without importing it or its packages; ``None`` if not found."""
    loaded = sys.modules.get(name)
    spec = getattr(loaded, "__spec__", None)
    if isinstance(spec, ModuleSpec):
        return spec
    if not name:
        return None
    parent = name.rpartition(".")[0]
    above = module_spec(parent) if parent else None
    if parent and (above is None or above.submodule_search_locations is None):
        return None
    return searched_spec(name, None if above is None else above.submodule_search_locations)


def searched_spec(name: str, path: Iterable[str] | None) -> ModuleSpec | None:
    """Return the spec of a module by the finders of Python, as if it was not imported.

    A finder that raises an error does not find it. That of Python does so for a folder without
    ``__init__.py`` in a package that is not imported: its spec is made here.

    Args:
        name: The name of the module.
        path: The folders of its package; ``None`` for a top-level module.
    """
    folders = None if path is None else list(path)
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, folders)
        except Exception:  # noqa: BLE001 - finders of other packages have errors of their own
            spec = None
        if spec is not None:
            return spec
    return _namespace_spec(name, folders or [])


def _namespace_spec(name: str, folders: list[str]) -> ModuleSpec | None:
    portions = [Path(folder, name.rpartition(".")[2]) for folder in folders]
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(portion) for portion in portions if portion.is_dir()]
    return spec if spec.submodule_search_locations else None


def folder_of(module: str) -> str:
    """Return the folder that contains the top-level package of a module; empty if unknown."""
    top = sys.modules.get(module.partition(".")[0])
    file = getattr(top, "__file__", None)
    if not isinstance(file, str):
        return ""
    folder, _ = os.path.split(os.path.abspath(file))  # noqa: PTH100 - pathlib takes ten times as long
    return os.path.split(folder)[0] if hasattr(top, "__path__") else folder


def _file_of(module: str) -> str | None:
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if isinstance(file, str):
        return file
    spec = module_spec(module)
    if spec is None:
        return None
    folders = spec.submodule_search_locations or ()  # for namespace packages
    return spec.origin if spec.has_location else next(iter(folders), None)


@functools.cache
def _is_installed(file: str | None) -> bool:
    return file is not None and not _INSTALLED.isdisjoint(Path(file).parts)


def _is_standard(top: str, file: str | None) -> bool:
    if top not in sys.stdlib_module_names:
        return False
    return file is None or (file.startswith(_standard_folders()) and not _is_installed(file))


@functools.cache
def _standard_folders() -> tuple[str, ...]:
    """Return the folders of the modules of Python itself."""
    import sysconfig  # it reads how Python was built: a fiftieth of a first run

    return tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))


@functools.cache
def _versions(top: str) -> str:
    """Return the distributions of a top-level package with their versions."""
    from importlib.metadata import version  # slow to import

    names = _distributions(top)
    return " ".join(f"{name}=={version(name)}" for name in names) or top


@functools.cache
def _distributions(top: str) -> tuple[str, ...]:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return (distribution(top).name,)
    except (PackageNotFoundError, ValueError):
        return tuple(sorted(set(_all_distributions().get(top, ()))))


@functools.cache
def _sibling_packages(top: str) -> tuple[str, ...]:
    """Return all top-level packages of the distribution of an installed package."""
    distributions = set(_distributions(top))
    return tuple(
        name for name, of in _all_distributions().items() if not distributions.isdisjoint(of)
    )


@functools.cache
def _all_distributions() -> dict[str, list[str]]:
    """Return the distributions of each top-level package. Takes 50 ms or more."""
    from importlib.metadata import packages_distributions

    return dict(packages_distributions())
