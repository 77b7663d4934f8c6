"""Tests of what coding agents read: AGENTS.md, the skill, and the texts for language models.

Their code and links are tested with those of all pages, in ``test_documents.py``.
"""

import builtins
import re
import shlex
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import click
import pytest
import yaml

from dagster_dataops import data_register, errors
from tests.command_line import main
from tests.documented_names import GROUPS, SETTING_NAMES, public_names
from tests.each import each
from tests.pages import DOCS, ROOT

SKILL = ROOT / "skills" / "dagster-dataops"
REFERENCES = sorted((SKILL / "references").glob("*.md"))
PUBLIC = public_names("dagster_dataops")
TEXTS = {
    path.name: path.read_text() for path in (SKILL / "SKILL.md", *REFERENCES, ROOT / "AGENTS.md")
}
ADDRESS = "https://example.org/docs/"


def front_matter(path: Path) -> tuple[dict[str, Any], str]:
    """Return the fields above a page, and the page."""
    _, fields, text = path.read_text().split("---\n", 2)
    return yaml.safe_load(fields), text


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def test_the_fields_of_the_skill_are_those_of_the_specification() -> None:
    fields, text = front_matter(SKILL / "SKILL.md")

    assert set(fields) == {"name", "description", "license", "compatibility"}
    assert fields["name"] == SKILL.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert len(fields["name"]) <= 64
    assert "Use it when" in fields["description"]
    assert 200 < len(fields["description"]) <= 1024
    assert len(fields["compatibility"]) <= 500
    assert text.lstrip().startswith("# dagster-dataops\n")


def test_the_skill_is_small_and_its_references_are_loaded_one_by_one() -> None:
    _, text = front_matter(SKILL / "SKILL.md")
    listed = re.findall(r"\]\((references/[\w-]+\.md)\)", text)

    assert len(text.splitlines()) <= 150
    assert sorted(set(listed)) == [f"references/{path.name}" for path in REFERENCES]
    for path in REFERENCES:
        fields, reference = front_matter(path)
        assert set(fields) == {"title", "triggers"}
        assert reference.lstrip().startswith(f"# {fields['title']}\n")
        assert all(isinstance(one, str) for one in fields["triggers"])
        assert f"[{fields['title']}](references/{path.name})" in text
        assert len(reference) < 6_000


def test_the_skill_needs_no_file_outside_of_its_folder() -> None:
    links = [
        (path, link)
        for path in (SKILL / "SKILL.md", *REFERENCES)
        for link in re.findall(r"\]\(([^)]+)\)", without_code(path.read_text()))
        if not link.startswith("https://")
    ]

    assert links
    assert all((path.parent / link).resolve().is_relative_to(SKILL) for path, link in links)


@each("name", sorted(TEXTS))
def test_an_operator_that_is_named_is_in_the_library(name: str) -> None:
    named = re.findall(rf"`(?:data\.)?({'|'.join(GROUPS)})\.([A-Z]\w*)[`(]", TEXTS[name])

    for group, operator in named:
        assert data_register.operator(group, operator), f"{group}.{operator}"


def test_the_skill_names_operators_of_every_kind_of_task() -> None:
    groups = set(re.findall(r"`(\w+)\.[A-Z]\w*`", TEXTS["library.md"]))

    assert groups >= set(GROUPS) - {"markdown", "shape"}


@each("name", sorted(TEXTS))
def test_a_setting_an_error_or_a_name_that_is_named_exists(name: str) -> None:
    text = TEXTS[name]
    settings = set(re.findall(r"`(_[a-z]+[\w]*)(?:=[^`]*)?`", text))
    raised = set(re.findall(r"`(\w+Error)`", text)) - {"ValueError"}
    imported = re.findall(r"from dagster_dataops import ([\w, ]+)", text)
    called = set(re.findall(r"`([A-Za-z_]\w*)\(", without_code(text))) - {"operator", "ppl", "help"}
    examples = {"grade"}

    assert settings <= SETTING_NAMES
    assert all(hasattr(errors, one) for one in raised)
    assert {one for line in imported for one in re.findall(r"\w+", line)} <= {*PUBLIC}
    assert called - examples <= {*PUBLIC, *dir(builtins)}


def test_the_commands_of_the_package_that_are_named_exist(
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = {
        found
        for text in TEXTS.values()
        for found in re.findall(r"python -m dagster_dataops (\w+)", text)
    }

    assert named
    for command in sorted(named):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
    assert "usage" in capsys.readouterr().out


def test_the_commands_of_dagster_that_are_named_are_accepted() -> None:
    cli = pytest.importorskip("dagster_dg_cli.cli").cli
    pages = [*TEXTS.values(), (DOCS / "how-to" / "coding-agents.md").read_text()]
    named = {
        line
        for text in pages
        for line in re.findall(r"(?m)\bdg ((?:check|dev|launch|list)[^`#\n]*)", text)
    }

    assert {line.split()[0] for line in named} == {"check", "launch", "list"}
    for line in sorted(named):
        command, words = cli, shlex.split(line)
        while isinstance(command, click.Group):
            command = command.get_command(click.Context(command), words.pop(0))
        command.make_context("dg", words)  # refuses unknown options


def test_agents_md_is_short_and_points_to_the_rules_and_the_skill() -> None:
    text = TEXTS["AGENTS.md"]
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    checks = ["ruff check . && ruff format .", "mypy", "lint-imports", "sphinx-build -q -W"]

    assert len(text.splitlines()) <= 70
    assert "`CONTRIBUTING.md`" in text
    assert "`skills/dagster-dataops/SKILL.md`" in text
    for check in checks:
        assert f"$ {check}" in text
        assert check in contributing
    paths = re.findall(r"`((?:docs|skills|\.ci)/[\w./-]+|CONTRIBUTING\.md)`", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.fixture
def llms_text(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the extension of Sphinx that writes the texts for language models."""
    pytest.importorskip("sphinx", reason="sphinx is of the extra docs")
    monkeypatch.syspath_prepend(str(DOCS))
    import llms_text  # type: ignore[import-not-found]

    return llms_text


@pytest.fixture
def files(llms_text: ModuleType) -> dict[str, str]:
    """Return the texts by their path on the site."""
    return dict(llms_text.files(DOCS, ADDRESS))


def test_llms_txt_has_the_form_and_lists_every_page(files: dict[str, str]) -> None:
    text = files["llms.txt"]
    links = re.findall(r"(?m)^- \[.+\]\((.+)\)(: .+)?$", text)
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}

    assert re.match(r"# dagster-dataops\n\n> .+\n(> .+\n)*\n", text)
    assert sorted(link for link, _ in links) == sorted(ADDRESS + page for page in pages)
    assert pages == set(files) - {"llms.txt", "llms-full.txt"}
    assert sum(bool(described) for _, described in links) > 0.9 * len(links)
    sections = re.findall(r"(?m)^## (.+)$", text)
    assert (sections[0], sections[-1]) == ("Start", "Optional")
    assert len(text) < 135 * len(pages)  # short lines; their number is that of the pages


@pytest.mark.slow
def test_llms_full_txt_has_every_page_operator_and_public_name(files: dict[str, str]) -> None:
    text = files["llms-full.txt"]

    assert all(page in text for name, page in files.items() if name.endswith(".md"))
    operators = {f"{group}.{name}" for group in GROUPS for name in data_register.operators(group)}
    assert {one for one in operators if f"\n## {one}\n" not in text} == set()
    described = set(re.findall(r"(?m)^### `dagster_dataops\.(\w+)", text))
    modules = {"assets", "checks", "graphs", "llm", "loading", "workplaces"}
    assert set(PUBLIC) <= described | modules
    assert 300_000 < len(text) < 1_200_000


@pytest.mark.slow
def test_the_texts_have_no_marks_that_only_the_site_understands(files: dict[str, str]) -> None:
    for name, text in files.items():
        assert "<!-- test" not in text, name
        assert not re.search(r"```\{|^\.\. \w+::|^\(\w+\.\w+\)=", text, re.MULTILINE), name
        assert not re.search(r" at 0x[0-9a-f]{6}", text), name  # not the same in each build


def test_links_between_the_texts_lead_to_texts(files: dict[str, str]) -> None:
    for name, text in files.items():
        for link in re.findall(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", without_code(text)):
            if name.endswith(".md") and not link.startswith("http"):
                target = (DOCS / name).parent.joinpath(link).resolve()
                assert target.relative_to(DOCS).as_posix() in files, (name, link)


@pytest.mark.slow
def test_the_build_of_the_site_writes_the_texts(llms_text: ModuleType, tmp_path: Path) -> None:
    config = SimpleNamespace(html_baseurl=ADDRESS)
    app = SimpleNamespace(
        srcdir=DOCS, outdir=tmp_path, config=config, builder=SimpleNamespace(format="html")
    )
    llms_text.write(app, ValueError("the build has failed"))
    assert not list(tmp_path.iterdir())

    llms_text.write(app, None)

    assert (tmp_path / "llms.txt").read_text().startswith("# dagster-dataops\n")
    assert (tmp_path / "how-to" / "yaml.md").exists()


def test_a_directive_that_is_not_known_stops_the_build(llms_text: ModuleType) -> None:
    import api_text  # type: ignore[import-not-found]

    with pytest.raises(ValueError, match="'autofantasy' of dagster_dataops.config"):
        api_text.expanded(".. autofantasy:: dagster_dataops.config\n")
    with pytest.raises(ValueError, match="dagster_dataops.nothing, which cannot be imported"):
        api_text.expanded(".. autoclass:: dagster_dataops.nothing\n")
