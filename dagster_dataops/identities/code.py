"""Code versions: a digest of source, so that an edited function or class is seen as such.

What counts: the syntax tree of the function or class (comments, docstrings and formatting do not),
of the functions and classes of the same module that it names or inherits from, and the values of
constants: those of that module and of the enclosing function that it names, those of the class,
and the defaults of parameters. Other modules do not count.
"""

import ast
import inspect
import re
import textwrap
import types
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cached_property
from pathlib import PurePath
from typing import Any

import xxhash

from dagster_dataops.identities.canonical import canonical, digest, function_name

_PLAIN = (str, int, float, complex, bytes, type(None), Decimal, date, time, timedelta, Enum)
_COMPOSED = (tuple, list, dict, set, frozenset, range, re.Pattern, PurePath)


def code_digest(target: Any, ignored: AbstractSet[str] = frozenset()) -> str:
    """Return the code version of a function or class.

    Args:
        target: The function or class.
        ignored: Attributes of classes that are no part of what is computed.
    """
    return digest(sorted(_Code(ignored).parts(target)))


class _Code:
    """What functions and classes rest on, each looked at once."""

    def __init__(self, ignored: AbstractSet[str]) -> None:
        self._ignored = ignored
        self._seen: set[int] = set()

    def parts(self, target: Any) -> Iterator[str]:
        """Yield a text for ``target`` and for each thing that it rests on."""
        target = inspect.unwrap(target) if callable(target) else target
        if id(target) in self._seen:
            return
        self._seen.add(id(target))
        yield f"{target.__qualname__} {_tree(target, self._ignored)}"
        for name, value in self._related(target):
            unwrapped = inspect.unwrap(value) if callable(value) else value
            if isinstance(unwrapped, (types.FunctionType, type)):
                if unwrapped.__module__ == target.__module__:
                    yield from self.parts(unwrapped)
            elif isinstance(value, (*_PLAIN, *_COMPOSED)) or is_dataclass(value):
                yield f"{name} = {self._constant(value, target.__module__)}"

    def _constant(self, value: Any, module: str) -> Any:
        """Return the form of a constant; functions in it, as in a table, count by code."""

        def code_of(function: Any) -> str:
            ours = function.__module__ == module
            return digest(sorted(self.parts(function))) if ours else function_name(function)

        return canonical(value, code_of)

    def _related(self, target: Any) -> Iterator[tuple[str, Any]]:
        """Yield what ``target`` rests on, by name: bases, constants, defaults, what it names."""
        if isinstance(target, type):
            yield from ((base.__qualname__, base) for base in target.__mro__[1:])
            for name, value in vars(target).items():
                if name not in self._ignored and not name.startswith("__"):
                    yield name, value
        for function in _functions(target):
            defaults = (function.__defaults__, function.__kwdefaults__)
            yield f"{function.__qualname__} defaults", defaults
            yield from _named_values(function)


def _functions(target: Any) -> list[types.FunctionType]:
    if not isinstance(target, type):
        return [target] if isinstance(target, types.FunctionType) else []
    found = [function for member in vars(target).values() for function in _behind(member)]
    return [function for function in found if isinstance(function, types.FunctionType)]


def _behind(member: Any) -> list[Any]:
    """Return the functions that a member of a class is made of."""
    match member:
        case staticmethod() | classmethod():
            return [inspect.unwrap(member.__func__)]
        case property():
            return [member.fget, member.fset, member.fdel]
        case cached_property():
            return [member.func]
    return [inspect.unwrap(member)] if callable(member) else []


def _named_values(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # an empty cell: a name that is assigned later
            continue


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _tree(target: Any, ignored: AbstractSet[str]) -> str:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(target)))
    except (OSError, TypeError, SyntaxError):  # typed at a prompt, or a lambda inside a call
        return _bytecode(target)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:]
            node.decorator_list = []  # how it is run is no part of what it computes
            node.body = [one for one in node.body if not _sets(one, ignored)]
    return xxhash.xxh3_128_hexdigest(ast.dump(tree).encode())


def _sets(statement: ast.stmt, ignored: AbstractSet[str]) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name in ignored
    return False


def _bytecode(target: Any) -> str:
    codes = [function.__code__ for function in _functions(target)]
    return digest([(code.co_code, _plain(code.co_consts), code.co_names) for code in codes])


def _plain(constants: tuple[Any, ...]) -> list[Any]:
    return [
        (item.co_code, _plain(item.co_consts)) if isinstance(item, types.CodeType) else item
        for item in constants
    ]
