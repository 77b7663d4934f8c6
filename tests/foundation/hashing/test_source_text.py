"""Tests of dagster_dataops.foundation.hashing.source_text."""

import argparse
import ast
import dataclasses
import inspect
import linecache
import tarfile
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.foundation.hashing.named_references import codes_in
from dagster_dataops.foundation.hashing.source_text import instructions, text_of, tree_digest

LAYOUTS = '''
def plain(a): return a

def closed(
    a,
    b=(
        1,
),
):
    c = a
# a comment that is indented less

    # and one that is not
    return b

def texts(a):
    b = """
not indented
  def no(): function
"""
    return b + \\
a

def outer(a):
    """A docstring."""
    @decorated(1)
    def inner(
        b,
    ):
        """A docstring."""
        return b
    async def later():
        return [
    1,
        ]
    return inner, later

@decorated(first(1), [
1])
def listed(): pass

@decorated(first(1), lambda x: x)
def with_lambda(x):
    return x

if len("form feeds"):
        \f    def paged(self):
                \f        a = self
        return a
\f
    def after(self): return self

class Kind:
\tdef tabbed(self):
\t\tif self:
\t\t\treturn 1

\t@property
\tdef last(self): return 2
'''


def slow(code: types.CodeType, lines: list[str]) -> str:
    """Return the digest from the block that `inspect` finds; of the byte code without a tree."""
    try:
        block = inspect.getblock(lines[code.co_firstlineno - 1 :])
        nested = block[0][:1].isspace()
        node: Any = ast.parse("".join(["if 1:\n", *block] if nested else block)).body[0]
    except (SyntaxError, IndexError, ValueError):
        return instructions(code)
    node = node.body[0] if isinstance(node, ast.If) else node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return instructions(code)
    node.decorator_list = []
    return tree_digest(node)


@pytest.mark.parametrize("source", [None, argparse, dataclasses, tarfile, textwrap], ids=str)
def test_the_text_is_that_of_the_block_that_inspect_finds(source: Any, tmp_path: Path) -> None:
    path = tmp_path / "layouts.py"
    path.write_text(LAYOUTS if source is None else Path(source.__file__).read_text())
    lines = linecache.getlines(str(path))
    codes = codes_in(compile("".join(lines), str(path), "exec", dont_inherit=True))
    functions = [
        types.FunctionType(code, {}, None, None, tuple(types.CellType() for _ in code.co_freevars))
        for code in codes
        if not code.co_name.startswith("<")
    ]
    assert len(functions) > 5
    for function in functions:
        assert text_of(function) == slow(function.__code__, lines), function.__name__


def test_a_parser_that_a_collection_disturbed_is_asked_again(monkeypatch):
    calls = []
    parse = ast.parse

    def disturbed(source):
        calls.append(source)
        if len(calls) == 1:
            raise SystemError("AST constructor recursion depth mismatch (before=198, after=250)")
        return parse(source)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert text_of(disturbed) is not None
    assert len(calls) > 1
