"""Tests of docstrings on asset pages: the form of each style, without a lost word."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.assets.planning.descriptions import described
from dagster_dataops.data import data_register
from tests.assets.helpers import definitions_of, pipeline_of, spec_of
from tests.registries import OperatorRegistry

GOOGLE = """
    Make a text loud.

    More of it: in
    two lines.

    Args:
        data (dict): With a text.
        input_key: Where it is,
            on two lines.

            A paragraph.
        *more: Others.

    Returns:
        The record, or
        nothing.

    Raises:
        ValueError: It has none.

    Note:
        Not quick.

    Example:
        >>> loud({"text": "a"})
        {"text": "A"}
    """
GOOGLE_SHOWN = """
Make a text loud.

More of it: in
two lines.

**Args**

- `data` (dict): With a text.
- `input_key`: Where it is,
  on two lines.

  A paragraph.
- `*more`: Others.

**Returns**

The record, or
nothing.

**Raises**

- `ValueError`: It has none.

**Note**

Not quick.

**Example**

```python
>>> loud({"text": "a"})
{"text": "A"}
```
"""
NUMPY = """Make a text loud.

Parameters
----------
x : int
    The x.
y, z
    Others.

Returns
-------
dict
    The record.
"""
NUMPY_SHOWN = """
Make a text loud.

**Parameters**

- `x` (int)
  The x.
- `y, z`
  Others.

**Returns**

dict
    The record.
"""
REST = """Make a text loud.

:param x: The x.
:param int y: The y.
:returns: The record.
"""
REST_SHOWN = """
Make a text loud.

- `x`: The x.
- `y` (int): The y.
- returns: The record.
"""


@pytest.mark.parametrize(
    ("docstring", "shown"), [(GOOGLE, GOOGLE_SHOWN), (NUMPY, NUMPY_SHOWN), (REST, REST_SHOWN)]
)
def test_sections_have_titles_and_arguments_are_lists(docstring: str, shown: str) -> None:
    found = described(docstring)
    assert found is not None
    assert re.sub(r"\n{3,}", "\n\n", found) == shown.strip()


@pytest.mark.parametrize(
    "text",
    ["Plain.", "One: two\nthree.", "Title:\n\nNo block.", "- a\n- b", "A | B\n--- | ---\n1 | 2"],
)
def test_a_docstring_without_sections_stays_as_it_is_written(text: str) -> None:
    assert described(text) == text


@pytest.mark.parametrize("nothing", [None, "", "  \n "])
def test_no_docstring_is_no_description(nothing: str | None) -> None:
    assert described(nothing) is None


def test_no_word_of_the_packages_docstrings_is_lost() -> None:
    words = re.compile(r"\w+")
    for group in data_register.groups():
        for name in data_register.operators(group):
            text = data_register.operator(group, name).__dataops_spec__.description
            assert words.findall(described(text) or "") == words.findall(text)


def test_the_asset_of_an_operator_and_that_of_a_source_function_show_markdown(
    registry: OperatorRegistry, root: Path
) -> None:
    @registry("data.text", _concurrency_mode="thread")
    def loud(record: dict, key: str = "text") -> Any:
        """Make a text loud.

        Args:
            record: With a text.
            key: Where it is.
        """

    def texts() -> Any:
        """Yield texts.

        Yields:
            A text each.
        """

    definitions = definitions_of(pipeline_of(loud=loud.operator()), texts, root)
    operator = spec_of(definitions, "docs", "loud").description or ""
    assert "**Args**\n\n- `record`: With a text.\n- `key`: Where it is." in operator
    source = spec_of(definitions, "docs", "texts").description or ""
    assert textwrap.dedent(source) == source
    assert "**Yields**\n\nA text each." in source
