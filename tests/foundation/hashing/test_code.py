"""Tests of dagster_dataops.foundation.hashing.code."""

import importlib.util
import itertools
import sys
import textwrap
from typing import Any

import pytest

from dagster_dataops.foundation.hashing.code import code_digest, code_facts
from dagster_dataops.operators.options.settings import SETTING_NAMES

COUNTER = itertools.count()


@pytest.fixture
def defined(tmp_path, monkeypatch):
    """Return ``target`` of a module with that source."""

    def target_of(source: str, target: str = "target") -> Any:
        path = tmp_path / f"sample_{next(COUNTER)}.py"
        path.write_text(textwrap.dedent(source))
        spec = importlib.util.spec_from_file_location("sample", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "sample", module)
        spec.loader.exec_module(module)
        return getattr(module, target)

    return target_of


@pytest.fixture
def version(defined):
    """Return the code version of ``target`` in a module with that source."""

    def version_of(source: str, target: str = "target") -> str:
        return code_digest(defined(source, target), SETTING_NAMES.__contains__)

    return version_of


FUNCTION = """
LIMIT = 3
UNUSED = 1

def helper(text):
    return text[:LIMIT]

def target(data: dict):
    data["text"] = helper(data["text"])
    return data
"""

CLASS = """
import functools, re
TABLE = {"a": 1}
PATTERN = re.compile("a")

def helper(text):
    return text.strip()

class Base:
    suffix = "!"

    def finish(self, text):
        return text + self.suffix

class target(Base):
    _max_workers = 4
    words = TABLE

    def __init__(self, key="text"):
        self.key = key

    @staticmethod
    def clean(text):
        return helper(text)

    @property
    def pattern(self):
        return PATTERN

    @functools.cached_property
    def size(self):
        return len(self.words)

    def forward(self, data):
        data[self.key] = self.finish(self.clean(data[self.key]))
        return data
"""

CHANGES = {
    "the source": (FUNCTION, 'data["text"] = helper', 'data["other"] = helper'),
    "a helper": (FUNCTION, "return text[:LIMIT]", "return text[LIMIT:]"),
    "a constant that a helper names": (FUNCTION, "LIMIT = 3", "LIMIT = 4"),
    "a method": (CLASS, 'def __init__(self, key="text")', 'def __init__(self, key="body")'),
    "a base class": (CLASS, "return text + self.suffix", "return self.suffix + text"),
    "an attribute of a base class": (CLASS, 'suffix = "!"', 'suffix = "?"'),
    "a constant behind a class attribute": (CLASS, '{"a": 1}', '{"a": 2}'),
    "a helper of a static method": (CLASS, "text.strip()", "text.lstrip()"),
    "a constant of a property": (CLASS, 're.compile("a")', 're.compile("b")'),
    "a cached property": (CLASS, "len(self.words)", "len(self.words) + 1"),
    "the name of a local variable": (
        FUNCTION,
        "def helper(text):\n    return text[:LIMIT]",
        "def helper(word):\n    return word[:LIMIT]",
    ),
    "a type hint": (FUNCTION, "def helper(text):", "def helper(text: str):"),
    "a dunder attribute of the author": (CLASS, 'suffix = "!"', 'suffix = "!"\n    __kind__ = 1'),
}


@pytest.mark.parametrize(("source", "before", "after"), CHANGES.values(), ids=CHANGES)
def test_another_version_is_seen_when_it_changes(version, source, before, after):
    assert before in source

    assert version(source) != version(source.replace(before, after))


SAME = {
    "a comment": (FUNCTION, "    return data", "    # done\n    return data"),
    "a docstring": (FUNCTION, "def target(data: dict):", 'def target(data: dict):\n    """Cut."""'),
    "a docstring of a helper": (FUNCTION, "def helper(text):", 'def helper(text):\n    "Cut."'),
    "formatting": (FUNCTION, "helper(data[", "helper( data["),
    "a constant that nothing names": (FUNCTION, "UNUSED = 1", "UNUSED = 2"),
    "its place in the file": (FUNCTION, "UNUSED = 1", "UNUSED = 1\n\n\nMORE = 1"),
    "a docstring of a class": (CLASS, "class target(Base):", 'class target(Base):\n    "Cut."'),
    "a docstring of a method": (
        CLASS,
        "def forward(self, data):",
        'def forward(self, data):\n        "X"',
    ),
    "how it is run": (CLASS, "_max_workers = 4", "_max_workers: int = 8"),
    "an unrelated function": (FUNCTION, "UNUSED = 1", "def unused(a):\n    return a"),
    "an unrelated import": (FUNCTION, "UNUSED = 1", "import decimal"),
    "the order of definitions": (
        CLASS,
        'PATTERN = re.compile("a")\n\ndef helper(text):\n    return text.strip()\n',
        'def helper(text):\n    return text.strip()\n\nPATTERN = re.compile("a")\n',
    ),
    "the order of imports": (CLASS, "import functools, re", "import re\nimport functools"),
    "how a constant is written": (CLASS, '{"a": 1}', "dict(a=2 - 1)"),
    "how a text is quoted": (CLASS, 'suffix = "!"', "suffix = '!'"),
    "a class that nothing uses": (CLASS, "class Base:", "class Other:\n    a = 1\n\nclass Base:"),
    "a comment in a table": (CLASS, '{"a": 1}', '{  # all\n    "a": 1,\n}'),
    "nothing at all": (CLASS, "TABLE", "TABLE"),
}


@pytest.mark.parametrize(("source", "before", "after"), SAME.values(), ids=SAME)
def test_the_version_is_the_same_when_it_changes(version, source, before, after):
    assert before in source

    assert version(source) == version(source.replace(before, after))


USED = """
import collections, random, types
RNG = random.Random(1)
STATE = types.SimpleNamespace(calls=0)
SEEN = collections.Counter()

class Kept:
    def __init__(self):
        self.cache = {}
KEPT = Kept()

def target(data: dict):
    STATE.calls += 1
    SEEN[data["n"]] += 1
    KEPT.cache[data["n"]] = RNG.random()
    return data
"""


def test_an_operator_keeps_its_version_while_it_changes_its_constants(registry, defined):
    target = defined(USED)
    spec = registry("data.used")(target)().__dataops__.spec
    before = spec.code_version
    target({"n": 1})
    assert spec.code_version == before
    assert spec.code_version != registry("data.used")(target)().__dataops__.spec.code_version


MARKED = """
import typing
from typing import Annotated, Any
from dagster_dataops import Operational
CLIENT{annotation} = iter([{number}])

def target(data: dict):
    return CLIENT
"""


@pytest.mark.parametrize(
    "annotation", [": Annotated[Any, Operational]", ": 'Annotated[Any, Operational]'"]
)
def test_a_constant_that_is_annotated_as_operational_does_not_count(version, annotation):
    one, other = (MARKED.format(annotation=annotation, number=number) for number in (1, 2))
    assert version(one) == version(other)
    assert version(one) != version(MARKED.format(annotation="", number=1))


def test_what_cannot_be_compared_is_named_with_its_place(defined):
    text = "TEXTS = (text for text in 'ab')\nclass Held:\n    texts = TEXTS\n"
    target = defined(f"{text}def target(data):\n    return TEXTS, Held\n")
    assert code_facts(target).unknown == ("TEXTS of sample (a builtins.generator)",)


def test_an_operator_that_code_calls_counts_by_what_it_does_not_by_how_it_is_run(version):
    source = """
    from tests.registries import OperatorRegistry
    registry = OperatorRegistry(None)

    @registry("data.inner")
    def inner(row: dict, add=0):
        return {{"n": row["n"] + add}}

    INNER = inner(add={add}, _max_workers={workers})

    def target(row):
        return INNER([row])
    """
    before = version(source.format(add=1, workers=1))
    assert before == version(source.format(add=1, workers=2))
    assert before != version(source.format(add=2, workers=1))


REGISTERED = """
from tests.registries import OperatorRegistry
registry = OperatorRegistry(None)

@registry("data.code"{settings})
def target(data: dict, key="text"):
    data[key] = {expression}
    return data
"""


def test_registration_settings_are_no_part_of_the_version(version):
    plain = REGISTERED.format(settings="", expression="1")
    threads = REGISTERED.format(settings=", _concurrency_mode='thread'", expression="1")

    assert version(plain) == version(threads)


def test_a_registered_function_has_the_version_of_its_source(version):
    one = REGISTERED.format(settings="", expression="1")
    other = REGISTERED.format(settings="", expression="2")

    assert version(one) != version(other)


def test_a_value_of_the_enclosing_function_counts(version):
    source = """
    def make(factor):
        def scale(data):
            data["n"] *= factor
            return data
        return scale

    target = make({factor})
    """

    assert version(source.format(factor=2)) != version(source.format(factor=3))
    assert version(source.format(factor=2)) == version(source.format(factor=2))


def test_a_default_that_a_constant_gives_counts(version):
    source = """
    LIMIT = {limit}

    def helper(text, limit=LIMIT):
        return text[:limit]

    def target(data):
        return helper(data["text"])
    """

    assert version(source.format(limit=1)) != version(source.format(limit=2))


def test_a_function_in_a_table_counts(version):
    source = """
    def upper(text):
        return {expression}

    STEPS = {{"upper": upper}}

    def target(data):
        return STEPS["upper"](data["text"])
    """

    one = version(source.format(expression="text.upper()"))
    assert one != version(source.format(expression="text.lower()"))
    assert one == version(source.format(expression="text.upper()"))


def test_mutually_recursive_functions_and_tables_are_supported(version):
    source = """
    def odd(n):
        return n and even(n - 1)

    def even(n):
        return not n or STEPS["odd"](n - 1)

    STEPS = {"odd": odd, "even": even, "target": lambda n: target(n)}

    def target(data):
        return even(data["n"]) and STEPS
    """

    assert version(source) == version(source)


def test_a_date_that_is_a_constant_counts(version):
    source = """
    import datetime
    SINCE = datetime.date({year}, 1, 1)

    def target(data):
        return data if data["year"] > SINCE.year else []
    """

    assert version(source.format(year=2023)) != version(source.format(year=2024))


def test_code_without_source_counts_by_its_instructions():
    def typed(text: str):
        namespace: dict = {}
        exec(text, namespace)  # noqa: S102 - what a prompt does
        return code_digest(namespace["f"])

    assert typed("def f(data): return [data]") == typed("def f(data): return [data]")
    assert typed("def f(data): return [data]") != typed("def f(data): return []")
    assert typed("def f(data): return 'a'") != typed("def f(data): return 'b'")


PRINT_VERSION = """
WORDS = {"a", "b", "c", "d", "e"}
NESTED = {frozenset({"x", "y"}): 1}

class Helper:
    kinds = {"p", "q", "r"}

def target(data: dict):
    return [data] if data["w"] in WORDS | {"k", "l"} and NESTED and Helper else []

if __name__ == "__main__":
    from dagster_dataops.foundation.hashing.code import code_digest
    namespace = {}
    exec("def typed(data): return data in {'u', 'v', 'w'}", namespace)
    print(code_digest(target), code_digest(namespace["typed"]))
"""


def test_versions_are_equal_across_processes_for_all_hash_seeds(run_python):
    assert len({run_python(PRINT_VERSION, PYTHONHASHSEED=seed) for seed in "0123"}) == 1


LAZY = """
class Lazy:
    def __init__(self, package):
        self._package = package

    def __getattribute__(self, name):
        if name == "_package":
            return super().__getattribute__(name)
        raise ImportError(f"Cannot import {self._package}")

torch = Lazy("torch")

class target:
    backend = torch
    def forward(self, data):
        return torch.sum(data)
"""


def test_a_lazy_import_counts_by_its_class_and_name_and_is_not_loaded(version) -> None:
    assert version(LAZY) == version(LAZY)
    assert version(LAZY) != version(LAZY.replace('Lazy("torch")', 'Lazy("numpy")'))
    assert version(LAZY) != version(LAZY.replace("Cannot import", "Do import"))


def test_a_lazy_import_is_not_loaded_by_reading_its_code_version(version) -> None:
    loading = LAZY.replace(
        'raise ImportError(f"Cannot import {self._package}")', "LOADED.append(1)"
    )
    source = f"LOADED = []\n{loading}"
    before = version(source)
    assert before == version(source)
    assert sys.modules["sample"].LOADED == []
