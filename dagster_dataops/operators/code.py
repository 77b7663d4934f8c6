"""Code versions: a digest of an operator's source, so that an edited operator is seen as such.

What counts: the syntax tree of the function or class (comments, docstrings and formatting do not),
of the functions and classes of the same module that it names, and the values of the constants of
that module and of the enclosing function that it names. Other modules do not count.
"""

import ast
import inspect
import re
import textwrap
import types
from collections.abc import Iterator
from typing import Any

import xxhash

from dagster_dataops.operators.canonical import canonical, digest

_CONSTANTS = (str, int, float, bool, bytes, tuple, list, dict, set, frozenset, re.Pattern, type(None))


def code_digest(target: Any) -> str:
    """Return the code version of a function or class."""
    return digest(sorted(_parts(target, set())))


def _parts(target: Any, seen: set[int]) -> Iterator[str]:
    target = inspect.unwrap(target) if callable(target) else target
    if id(target) in seen:
        return
    seen.add(id(target))
    yield f"{target.__qualname__} {_tree(target)}"
    for function in _functions(target):
        for name, value in _named_values(function):
            unwrapped = inspect.unwrap(value) if callable(value) else value
            if isinstance(unwrapped, (types.FunctionType, type)):
                if unwrapped.__module__ == function.__module__:
                    yield from _parts(unwrapped, seen)
            elif isinstance(value, _CONSTANTS):
                yield f"{name} = {canonical(value)}"


def _functions(target: Any) -> list[types.FunctionType]:
    if not isinstance(target, type):
        return [target] if isinstance(target, types.FunctionType) else []
    return [member for member in vars(target).values() if isinstance(member, types.FunctionType)]


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


def _tree(target: Any) -> str:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(target)))
    except (OSError, TypeError, SyntaxError):  # typed at a prompt, or a lambda inside a call
        return _bytecode(target)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:]
            node.decorator_list = []  # registration settings are no part of what it computes
    return xxhash.xxh3_128_hexdigest(ast.dump(tree).encode())


def _bytecode(target: Any) -> str:
    codes = [function.__code__ for function in _functions(target)]
    text = repr([(code.co_code, _plain(code.co_consts), code.co_names) for code in codes])
    return xxhash.xxh3_128_hexdigest(text.encode())


def _plain(constants: tuple[Any, ...]) -> list[Any]:
    return [
        (item.co_code, _plain(item.co_consts)) if isinstance(item, types.CodeType) else item
        for item in constants
    ]
