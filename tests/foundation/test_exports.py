"""Names that are imported on first use."""

import ast
import re
from pathlib import Path

import pytest

import dagster_dataops


@pytest.mark.parametrize("stub", ["__init__.pyi", "assets/__init__.pyi", "readers/__init__.pyi"])
def test_every_line_of_a_stub_exports_what_it_imports(stub):
    """Type checkers take ``import name as name`` for an export, and no other import."""
    text = (Path(dagster_dataops.__file__).parent / stub).read_text()
    assigned = dict(re.findall(r"^(\w+) = (\w+)$", text, re.MULTILINE))
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            (alias,) = node.names
            assert alias.asname in {alias.name, *assigned.values()}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'pipelne'"):
        _ = dagster_dataops.pipelne
