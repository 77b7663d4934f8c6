"""The source of functions and modules without comments, docstrings and formatting."""

import ast
import inspect
import linecache
import os
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from dagster_dataops.foundation.hashing.code_origins import module_spec
from dagster_dataops.foundation.hashing.named_references import codes_in
from dagster_dataops.foundation.hashing.values import RULES, digest

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_WITH_DOCSTRINGS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
_STATEMENTS: Final = ("body", "orelse", "finalbody", "handlers", "cases")  # fields that hold them
_STARTED_AT: Final = time.time()
# By id of a code object. The code object is stored too, so that its id is not reused.
_texts: dict[int, tuple[types.CodeType, str]] = {}
_compiled: dict[str, tuple[list[str], set[types.CodeType]]] = {}


def text_of(function: types.FunctionType) -> str:
    """Return a digest of a function's code.

    It covers the syntax tree without decorators, because their effect is digested separately.
    Without source, or if the file was changed after import, it covers the byte code.
    """
    code = function.__code__
    known = _texts.get(id(code))
    if known is None:
        tree = _tree(function)
        text = instructions(code) if tree is None else tree_digest(tree)
        known = _texts[id(code)] = (code, text)
    return known[1]


def module_tree(name: str) -> ast.Module | None:
    """Return the syntax tree of a module, imported or not; ``None`` without source."""
    spec = module_spec(name)
    if spec is None or spec.origin is None or not spec.has_location:
        return None
    try:
        return parsed(Path(spec.origin).read_bytes())
    except (OSError, SyntaxError, ValueError):  # for example a compiled module
        return None


def tree_digest(tree: ast.AST) -> str:
    """Return a digest of a syntax tree; its docstrings are removed from the tree."""
    for node in _statements(tree):
        if isinstance(node, _WITH_DOCSTRINGS) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return digest(ast.dump(tree))


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a module or statement and all statements in it, without their expressions."""
    yield tree
    for name in _STATEMENTS:
        for inner in getattr(tree, name, ()):
            yield from _statements(inner)


def _tree(function: types.FunctionType) -> ast.AST | None:
    code = function.__code__
    if code.co_name == "<lambda>":  # its lines may hold other code too
        return None
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines or not _matches_file(code, lines):
        return None
    following = lines[code.co_firstlineno - 1 :]
    try:
        node = _function_in(_indented(following))
        if node is None or any(
            isinstance(decorator, ast.Lambda) for decorator in _in_decorators(node)
        ):
            # getblock ends at a lambda in a decorator: such a function has no tree, as ever.
            node = _function_in(inspect.getblock(following), alone=False)
    except (SyntaxError, IndexError, ValueError):
        return None
    if node is not None:
        node.decorator_list = []
    return node


def _indented(lines: list[str]) -> list[str]:
    """Return the lines of the function that the first line begins, by their indentation.

    `inspect.getblock` reads them token by token, which takes far longer. If a text of several lines
    is indented less, the lines end in it and cannot be parsed. All lines are returned if one has a
    form feed, behind which Python counts the indentation again.
    """
    indent = len(lines[0]) - len(lines[0].lstrip())
    header = False
    for number, line in enumerate(lines):
        text = line.lstrip()
        if text and "\f" in line:
            return lines
        if header and text and text[0] not in "#)]}" and len(line) - len(text) <= indent:
            return lines[:number]
        header = header or text.startswith(("def ", "async "))
    return lines


def parsed(source: str | bytes) -> ast.Module:
    """Return the tree of a source.

    Python 3.11 fails if a garbage collection meanwhile logs an exception, which parses, too
    (python/cpython issue 106905). The second time, the object with the exception is gone.
    """
    try:
        return ast.parse(source)
    except SystemError:
        return ast.parse(source)


def _function_in(block: list[str], *, alone: bool = True) -> _Function | None:
    """Return the tree of the function that a block begins with; ``None`` without one.

    With ``alone``, a block that has more, or cannot be parsed, is none; else the latter raises.
    """
    nested = block[0][:1].isspace()
    try:
        body = parsed("".join(["if 1:\n", *block] if nested else block)).body
    except SyntaxError:
        if alone:
            return None
        raise
    if isinstance(body[0], ast.If):
        body = [*body[0].body, *body[1:]]
    if not isinstance(body[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    return body[0] if len(body) == 1 or not alone else None


def _in_decorators(function: _Function) -> Iterator[ast.AST]:
    for decorator in function.decorator_list:
        yield from ast.walk(decorator)


def _matches_file(code: types.CodeType, lines: list[str]) -> bool:
    """Return whether a file still has the source that was imported from it."""
    path = code.co_filename
    try:
        if os.stat(path).st_mtime < _STARTED_AT:  # noqa: PTH116 - a path object takes longer
            return True
    except OSError:  # not a file, but for example a notebook cell
        return True
    known = _compiled.get(path)
    if known is None or known[0] is not lines:
        try:
            whole = compile("".join(lines), path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
        known = _compiled[path] = (lines, set(codes_in(whole)))
    return code in known[1]


def instructions(code: types.CodeType) -> str:
    """Return a digest of byte code with its constants and the parameters that count."""
    parts = [(nested, _parameters(nested)) for nested in codes_in(code)]
    codes = [
        [
            nested.co_code,
            _without_code(nested.co_consts),
            nested.co_names,
            *([more] if more else []),
        ]
        for nested, more in parts
    ]
    return digest(codes) + (RULES if any(more for _, more in parts) else "")


def _parameters(code: types.CodeType) -> list[Any]:
    """Return the names and kinds of parameters; empty if the byte code tells all about them.

    That is so for one plain parameter, and for methods that are generated from the annotations of a
    class, such as ``__init__`` of a dataclass.
    """
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    starred = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    kinds = [code.co_kwonlyargcount, code.co_posonlyargcount, starred]
    plain = len(names) <= 1 and not any(kinds)
    return [] if plain or code.co_name.startswith("__") else [*names, *kinds]


def _without_code(constants: tuple[Any, ...]) -> list[Any]:
    return [constant for constant in constants if not isinstance(constant, types.CodeType)]
