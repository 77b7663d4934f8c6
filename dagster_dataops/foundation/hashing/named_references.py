"""Find the names that code uses: global names, attributes of modules, imported modules."""

import ast
import dis
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Final

from dagster_dataops.foundation.hashing.code_origins import module_spec

_IMPORT: Final = dis.opmap["IMPORT_NAME"]
_ROOTS: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"})
_STEPS: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield ``code`` and all code objects nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def names_in(code: CodeType) -> set[str]:
    """Return the global names and attributes that code uses."""
    return {name for nested in codes_in(code) for name in nested.co_names}


def attributes_named(code: CodeType, root: str) -> set[tuple[str, ...]]:
    """Return the attribute chains used below ``root``: ``("f",)`` for ``root.f``, ``()`` alone."""
    chains: set[tuple[str, ...]] = set()
    for nested in codes_in(code):
        chain: list[str] | None = None
        for step in dis.get_instructions(nested):
            if chain is not None and step.opname in _STEPS:
                chain.append(str(step.argval))
                continue
            if chain is not None:
                chains.add(tuple(chain))
            chain = [] if step.opname in _ROOTS and step.argval == root else None
    return chains


def imports_in(code: CodeType, package: str) -> set[str]:
    """Return the modules that code imports when it runs.

    Args:
        code: The code of a function.
        package: The package of the function, to resolve relative imports.
    """
    modules: set[str] = set()
    for nested in codes_in(code):
        if _IMPORT not in nested.co_code[::2]:
            continue
        steps = list(dis.get_instructions(nested))
        for place, step in enumerate(steps):
            if step.opcode == _IMPORT:
                level, names = steps[place - 2].argval, steps[place - 1].argval
                modules.update(_modules(step.argval, level, names or (), package))
    return modules


def modules_imported(tree: ast.AST, package: str) -> set[str]:
    """Return all modules that the source of a module imports."""
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            modules.update(_modules(node.module or "", node.level, names, package))
    return modules


def _modules(name: str, level: object, names: Iterable[str], package: str) -> Iterator[str]:
    """Yield the modules of one import: ``from package import name`` may import two."""
    if isinstance(level, int) and level:
        from importlib.util import resolve_name  # slow to import

        try:
            name = resolve_name("." * level + name, package)
        except ImportError:  # beyond the top-level package: the import will fail
            return
    yield name
    for item in names:
        if item != "*" and module_spec(f"{name}.{item}") is not None:
            yield f"{name}.{item}"
