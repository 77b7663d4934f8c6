"""Tests of the catalogue in docs/: it has every operator of the library."""

import re
import tomllib
from pathlib import Path

from dagster_dataops import data_register
from docs import operator_catalogue as catalogue
from tests.documented_names import GROUPS, described_parameters
from tests.each import each

FOLDER = Path(catalogue.__file__).parent / "catalogue"
ENTRIES = {one.qualified_name: one for group in GROUPS for one in catalogue.entries(group)}

# Their behaviour is from no paper, and from no package with operators.
OWN = {
    "chat": {"Detect", "Secrets", "ToAlpaca", "ToAnthropic", "ToShareGPT", "Validate"},
    "chunk": {"Sentences"},
    "combine": {"Concat", "RoundRobin", "Sample", "Zip"},
    "dedup": {"Against", "Exact", "Index", "Url"},
    "documents": set(data_register.operators("documents")),
    "export": set(data_register.operators("export")),
    "html": {"Tables"},
    "join": {"Lookup", "Merge", "Table"},
    "language": {"Script"},
    "llm": {
        "Caption",
        "Classify",
        "Continue",
        "Embed",
        "Extract",
        "Generate",
        "ReadPage",
        "Transcribe",
        "Translate",
        "VisualQA",
    },
    "markdown": {"Sections"},
    "pii": {"Entities"},
    "review": {"Ask"},
    "sample": {"Balance", "GroupBy", "Mix", "Reservoir", "Sort", "Split", "TopK"},
    "score": {"Embedding", "Linear", "Model", "TrainCharNGram"},
    "shape": set(data_register.operators("shape")),
    "text": {"Chunk", "LengthFilter", "LetterRatioFilter", "Normalize"},
    "tokens": {"Encode", "Pack"},
    "verify": {"Fields", "Json", "JsonSchema", "MathEqual", "Python", "Regex"},
}
SOURCES = re.compile(
    r"datatrove|Data-Juicer|NeMo Curator|LazyLLM|RedPajama|CCNet|GPT-3|KenLM|FineWeb|GSM8K"
    r"|Hugging Face|tiktoken|detect-secrets|semchunk|trafilatura|markdownify|CommonMark"
    r"|py3langid|Pillow|imagehash|FFmpeg|libsndfile|soxr|ITU-R|et al\. \(?\d{4}|arXiv:\d{4}\.\d{5}"
)


def text_of(page: str) -> str:
    return (FOLDER / f"{page}.md").read_text(encoding="utf-8")


def test_every_group_has_a_page_that_the_index_lists() -> None:
    pages = {path.stem for path in FOLDER.glob("*.md")} - {"index"}
    _, _, contents = text_of("index").partition("```{toctree}")

    assert pages == set(GROUPS)
    assert sorted(GROUPS) == contents.split("\n\n")[1].split()[:-1]
    for group in GROUPS:
        assert f"```{{dataops}} group {group}\n```" in text_of(group)


@each("group", GROUPS)
def test_a_page_has_a_row_and_a_section_for_each_operator(group: str) -> None:
    rows, sections = text_of(group).splitlines(), list(catalogue.group_page(group))

    for name in data_register.operators(group):
        assert sum(row.startswith(f"| `{group}.{name}` | ") for row in rows) == 1
        assert sections.count(f"## {group}.{name}") == 1


@each("group", GROUPS)
def test_the_table_of_a_page_is_that_of_the_code(group: str) -> None:
    page = text_of(group)
    assert page == catalogue.with_table(page, group), "run python -m docs.operator_catalogue"


def test_the_rows_of_measured_operators_show_their_speed() -> None:
    (row,) = (x for x in text_of("filters").splitlines() if x.startswith("| `filters.WordCount`"))

    assert row.endswith(f" | {catalogue.speeds()['filters.WordCount']:,} |")
    assert catalogue.speeds().keys() <= ENTRIES.keys()
    for name, one in ENTRIES.items():
        by_default = all(option.default is not option.empty for option in one.options)
        if one.is_filter and by_default and one.reads == ["`text`"]:
            assert name in catalogue.speeds()


@each("name", ENTRIES)
def test_an_operator_begins_with_a_sentence_about_its_work(name: str) -> None:
    assert re.fullmatch(r"[A-Z].{8,150}\.", ENTRIES[name].sentence)


@each("name", ENTRIES)
def test_an_operator_names_the_source_of_its_behaviour(name: str) -> None:
    entry = ENTRIES[name]

    assert SOURCES.search(entry.text) or entry.name in OWN.get(entry.group, ())


@each("name", ENTRIES)
def test_an_operator_describes_each_of_its_options(name: str) -> None:
    entry = ENTRIES[name]
    described = described_parameters(entry.text).keys()
    options = {option.name for option in entry.options}

    assert options - described - entry.inherited.keys() == set()
    assert described - options == set()


def test_every_operator_is_the_way_to_do_a_task() -> None:
    _, _, tasks = text_of("index").partition("## Tasks")
    named = re.findall(r"`([a-z]+\.[A-Z]\w*)`", tasks.partition("\n## ")[0])

    assert set(named) == set(ENTRIES)


def test_a_row_names_columns_and_extras_by_the_docstring_and_the_defaults() -> None:
    def row(name: str) -> tuple[list[str], list[str], dict[str, bool]]:
        return ENTRIES[name].reads, ENTRIES[name].writes, ENTRIES[name].extras

    text = ["`text`"]
    assert row("text.FixUnicode") == (text, ["the same"], {"text": True})
    assert row("text.SimplifyText")[:2] == row("text.Simplify")[:2] == (text, ["the same"])
    assert row("language.Identify")[1] == ["`lang`", "`lang_score`"]
    assert row("language.Identify")[2] == {"language": True, "lingua": False}
    assert row("chunk.Characters") == (text, ["the same", "`chunk`"], {})
    assert row("filters.GopherQuality") == (text, [], {"spacy": False})
    assert row("verify.Json")[1] == ["`parsed`", "`valid`", "`error`"]
    assert row("join.Merge")[:2] == (["`on=`"], ["`columns=`"])
    assert row("export.Parquet") == ([], [], {"arrow": True})


def test_extras_of_operators_are_declared() -> None:
    project = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text())["project"]

    named = {extra for entry in ENTRIES.values() for extra in entry.extras}
    assert named - set(project["optional-dependencies"]) == set()


def test_names_of_operators_become_links() -> None:
    assert catalogue.linked("as `Exact` and `text.Chunk`", "dedup") == (
        "as [`Exact`](#dedup.Exact) and [`text.Chunk`](#text.Chunk)"
    )
    assert catalogue.linked("`Exact`, `text.Nothing`, ``text.Chunk``") == (
        "`Exact`, `text.Nothing`, ``text.Chunk``"
    )


def test_the_operators_that_replace_those_of_lazyllm_exist() -> None:
    page = (FOLDER.parent / "comparison.md").read_text(encoding="utf-8")
    rows = page.partition("### Operators by name")[2].split("\n| `")[1:]
    named = {name for row in rows for name in re.findall(r"`(\w+\.\w+)", row.split(" | ")[1])}

    assert len(rows) > 50
    assert named <= set(ENTRIES)
