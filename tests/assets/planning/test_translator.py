"""The default translator: keys, descriptions, options shown, and code references."""

import functools
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsTranslator, assets, data, data_register, pipeline
from dagster_dataops.assets.launchpad.config_schema import config_field
from dagster_dataops.assets.metadata.code_references import code_references, source_place
from dagster_dataops.assets.planning.descriptions import described
from dagster_dataops.assets.planning.translator import options_table
from dagster_dataops.operators.definition.shown_options import shown_options
from dagster_dataops.operators.secrets.secret_names import is_secret
from tests.assets.helpers import definitions_of, pipeline_of, spec_of
from tests.each import each
from tests.registries import OperatorRegistry

_TEXTS = (text for text in "ab")


class Client:
    """An object whose repr contains a secret."""

    def __repr__(self) -> str:
        return "Client(api_key='sk-123')"


@pytest.fixture
def upper(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="thread")
    def upper(record: dict, input_key: str = "text") -> dict:
        """Make it loud.

        Reads and writes ``input_key``.
        """
        record[input_key] = record[input_key].upper()
        return record

    return upper


def options_shown(registry: OperatorRegistry, **options: Any) -> Any:
    @registry("data.text")
    def shown(record: dict, **anything: Any) -> dict:
        return record

    return shown_options(registry.operator("text", "shown")(**options).__dataops__)


def test_a_node_is_an_asset_with_key_group_deps_kinds_and_description(
    upper: Any, root: Path
) -> None:
    ppl = pipeline_of(loud=upper(), louder=upper(_max_workers=3))
    spec = spec_of(definitions_of(ppl, "texts.jsonl", root), "docs", "louder")
    assert spec.group_name == "docs"
    assert [dep.asset_key for dep in spec.deps] == [dg.AssetKey(["docs", "loud"])]
    assert spec.kinds == {"python", "json"}
    assert spec.description == "Make it loud.\n\nReads and writes `input_key`."
    assert spec.tags["dagster_dataops/operator"] == "text.upper"
    assert "dagster_dataops/operator" not in spec.metadata
    options = spec.metadata["dagster_dataops/options"].md_str
    assert options.splitlines()[2:] == [
        r"| \_concurrency\_mode | thread |",
        r"| \_max\_workers | 3 |",
    ]


def test_an_unnamed_pipeline_has_keys_of_one_part(upper: Any, root: Path) -> None:
    definitions = definitions_of(pipeline_of("", loud=upper()), "texts.jsonl", root)
    assert spec_of(definitions, "loud").group_name == "dataops"


def test_what_is_as_in_the_operator_is_not_shown(registry: OperatorRegistry, root: Path) -> None:
    @registry("data.text")
    def plain(record: dict, input_key: str = "text", times: int = 1) -> dict:
        return record

    @registry("data.text")
    def bare(record: dict) -> dict:
        return record

    for operator in (plain(input_key="text", times=1), plain(_max_workers=0), bare()):
        definitions = definitions_of(pipeline_of(node=operator), "texts.jsonl", root)
        assert spec_of(definitions, "docs", "node").metadata.keys() == {"dagster/code_references"}


def test_an_operator_whose_name_no_tag_can_hold_is_named_in_the_metadata(root: Path) -> None:
    def nameless(record: dict) -> dict:
        return record

    with pipeline("docs") as ppl:
        ppl.node = nameless
    spec = spec_of(definitions_of(ppl, "texts.jsonl", root), "docs", "node")
    reference = f"{__name__}.{nameless.__qualname__}"
    assert spec.metadata["dagster_dataops/operator"] == reference


def test_an_operator_of_the_library_is_described_in_one_paragraph(root: Path) -> None:
    ppl = pipeline_of(node=data.filters.WordCount(min_words=3))
    spec = spec_of(definitions_of(ppl, "texts.jsonl", root), "docs", "node")
    assert spec.description == (
        "Keep texts of `min_words` to `max_words` words.\n\nMore: `help(data.filters.WordCount)`."
    )
    assert spec.metadata.keys() == {"dagster_dataops/options"}
    shown = spec.metadata["dagster_dataops/options"].md_str.splitlines()[2:]
    assert shown == [r"| min\_words | 3 | 10 |"]


def test_the_code_version_follows_code_and_options_but_not_how_it_is_run(
    upper: Any, registry: OperatorRegistry, root: Path
) -> None:
    @registry("data.text")
    def lower(record: dict, input_key: str = "text") -> dict:
        record[input_key] = record[input_key].lower()
        return record

    @registry("data.text")
    def ask(record: dict, api_key: str = "", timeout: float = 30, model: str = "a") -> dict:
        return record

    def version(operator: Any) -> str | None:
        definitions = definitions_of(pipeline_of(node=operator), "texts.jsonl", root)
        return spec_of(definitions, "docs", "node").code_version

    assert version(upper()) == version(upper(_max_workers=7))
    assert len({version(upper()), version(upper(input_key="body")), version(lower())}) == 3
    usual = version(ask(api_key="one"))
    assert version(ask(api_key="two", timeout=60)) == usual
    assert version(ask(api_key="one", model="b")) != usual


def test_the_page_says_what_cannot_be_compared(registry: OperatorRegistry, root: Path) -> None:
    @registry("data.text")
    def ask(record: dict, texts: Any = None) -> dict:
        return record if _TEXTS else {}

    node = pipeline_of(node=ask(texts=(text for text in "ab")))
    metadata = spec_of(definitions_of(node, "texts.jsonl", root), "docs", "node").metadata
    said = metadata["dagster_dataops/cannot_be_resumed"]
    assert "option 'texts' (a builtins.generator) cannot be compared" in said
    assert f"the constant _TEXTS of {__name__} (a builtins.generator) cannot be compared" in said


@each("name", ["api_key", "openai_api_key", "hf_token", "token", "PASSWORD", "client_secret"])
def test_secrets_are_hidden(name: str, registry: OperatorRegistry) -> None:
    assert is_secret(name)
    shown = options_shown(registry, **{name: "sk-123", "nested": {name: "sk-123"}})
    assert shown == {name: "(hidden)", "nested": {name: "(hidden)"}}


@each("name", ["max_tokens", "tokenizer", "key", "input_key", "author"])
def test_ordinary_names_are_not_secrets(name: str) -> None:
    assert not is_secret(name)


def test_objects_are_shown_by_their_class_because_their_text_may_contain_secrets(
    registry: OperatorRegistry,
) -> None:
    shown = options_shown(
        registry,
        client=Client(),
        call=len,
        bound=functools.partial(max, 1),
        path=Path("/data/words.txt"),
        pair=(1, 2.5),
        limit=float("inf"),
        many=list(range(50)),
        long="x" * 1000,
    )
    assert shown["client"] == f"{__name__}.Client object"
    assert shown["call"] == "builtins.len"
    assert shown["bound"] == "functools.partial object"
    assert shown["path"] == "/data/words.txt"
    assert shown["pair"] == [1, 2.5]
    assert shown["limit"] == "inf"
    assert shown["many"] == [*range(20), "and 30 more"]
    assert shown["long"] == "x" * 200 + "..."


def test_a_translator_changes_keys_groups_owners_and_dependencies(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    class Ours(DataOpsTranslator):
        def get_asset_spec(self, data: assets.DataOpsTranslatorData) -> dg.AssetSpec:
            spec = super().get_asset_spec(data)
            return spec.replace_attributes(
                key=spec.key.with_prefix("team"),
                group_name="corpus",
                owners=["team:data"],
                automation_condition=dg.AutomationCondition.eager(),
            ).merge_attributes(deps=["settings"], tags={"tier": "gold"})

    ppl = pipeline_of(loud=upper(), louder=upper())
    definitions = definitions_of(
        ppl,
        "texts.jsonl",
        root,
        dagster_dataops_translator=Ours(),
        others=[dg.AssetSpec("settings")],
    )
    spec = spec_of(definitions, "team", "docs", "louder")
    assert {dep.asset_key.to_user_string() for dep in spec.deps} == {"team/docs/loud", "settings"}
    assert spec.group_name == "corpus"
    assert spec.owners == ["team:data"]
    assert spec.tags["tier"] == "gold"
    assert spec.kinds == {"python", "json"}
    assert spec.automation_condition == dg.AutomationCondition.eager()


def test_options_are_a_table_with_defaults_where_they_differ(registry: OperatorRegistry) -> None:
    @registry("data.text")
    def told(record: dict, size: int, key: str = "text", mark: str = "", api_key: str = "") -> dict:
        return record

    @registry("data.text")
    def listed(record: dict, words: list, text: str) -> dict:
        return record

    assert options_table(told(size=3, key="a|b", api_key="sk-123").__dataops__).splitlines() == [
        "| option | value | default |",
        "| --- | --- | --- |",
        "| size | 3 |  |",
        r"| key | a\|b | text |",
    ]
    required = listed(words=list(range(30)), text="x" * 300)
    assert options_table(required.__dataops__).splitlines()[0] == "| option | value |"


def test_the_launchpad_of_each_operator_has_its_own_timeout(registry: OperatorRegistry) -> None:
    @registry("data.text")
    def ask(record: dict, timeout: float = 30) -> dict:
        return record

    shown = [config_field(ask(timeout=seconds)).default_value for seconds in (5.0, 7.0)]
    assert [config["params"]["timeout"] for config in shown] == [5.0, 7.0]


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


@each(
    "text",
    ["Plain.", "One: two\nthree.", "Title:\n\nNo block.", "- a\n- b", "A | B\n--- | ---\n1 | 2"],
)
def test_a_docstring_without_sections_stays_as_it_is_written(text: str) -> None:
    assert described(text) == text
    assert described(None) is described("") is described("  \n ") is None


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


def logged(function: Any) -> Any:
    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner


@logged
def wrapped(record: dict) -> dict:
    return record


class Outer:
    @logged
    class Decorated:
        """The decorator is the first line of a decorated class, as of a decorated function."""

    class Plain:
        pass


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip() == text)


@pytest.mark.parametrize(
    ("target", "text"),
    [(logged, "def logged(function: Any) -> Any:"), (Outer.Plain, "class Plain:")],
    ids=["function", "nested class"],
)
def test_functions_and_classes_are_found(target: Any, text: str) -> None:
    assert source_place(target) == (str(Path(__file__).absolute()), line_of(text))


def test_a_wrapped_function_leads_to_its_original_source() -> None:
    expected = inspect.getsourcelines(inspect.unwrap(wrapped))[1]
    assert source_place(wrapped) == (str(Path(__file__).absolute()), expected)
    assert source_place(functools.partial(wrapped)) == source_place(wrapped)
    decorated = Outer.Decorated.__wrapped__  # type: ignore[attr-defined]
    place = source_place(decorated)
    assert place is not None
    assert place[1] == line_of("class Decorated:") - 1


def test_code_without_a_file_has_no_reference() -> None:
    typed: dict[str, Any] = {}
    exec("def prompt(record): return record\nclass Prompt: pass", typed)  # noqa: S102
    for target in (typed["prompt"], typed["Prompt"], len, dict, 5):
        assert code_references(target) == {}


def test_an_operators_asset_opens_its_source(registry: OperatorRegistry, root: Path) -> None:
    @registry("data.text")
    def referred(record: dict) -> dict:
        return record

    group = registry.new_group("classes")

    class Referred(group):
        def forward(self, record: dict) -> dict:
            return record

    ppl = pipeline_of(one=referred(), two=Referred())
    definitions = definitions_of(ppl, "texts.jsonl", root)
    found = []
    for name in ("one", "two"):
        value = spec_of(definitions, "docs", name).metadata["dagster/code_references"]
        assert isinstance(value, dg.CodeReferencesMetadataValue)
        found += value.code_references
    assert [(r.file_path, r.line_number) for r in found] == [
        (str(Path(__file__).absolute()), line_of("def referred(record: dict) -> dict:") - 1),
        (str(Path(__file__).absolute()), line_of("class Referred(group):")),
    ]
