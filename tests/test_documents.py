"""The code of README.md and of the documentation runs.

Each page is one script: its Python blocks in order, in one namespace, in an empty folder. A block
whose first line is a comment with a file name (``# definitions.py``, ``# defs.yaml``) is written to
that file instead. Two kinds of HTML comments steer this; readers do not see them:

- ``<!-- test``, a line end, Python code and ``-->``: code that only the test runs, to make the
  input of a sample or to check its result.
- ``<!-- not run: reason -->`` in front of a block: the test leaves the block out.

The comment behind a ``print`` is its expected output: ``print(1 + 1)  # 2``. A page with a
``defs.yaml`` can load it: ``from yaml_project import load``.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import dagster_dataops
from dagster_dataops.__main__ import main
from dagster_dataops.configuration import Configuration
from dagster_dataops.operators.options.settings import SETTING_NAMES
from tests.warm_python import SCRIPT, WarmPython

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]

_BLOCK = re.compile(
    r"(?P<skipped><!-- not run: [^>]+ -->\n+)?"
    r"^```(?P<language>[\w-]*)\n(?P<code>.*?)^```$"
    r"|^<!-- test\n(?P<hidden>.*?)^-->$",
    re.DOTALL | re.MULTILINE,
)
_FILE = re.compile(r"# ([\w./-]+\.(?:py|yaml|toml))\b.*\n")
_PRINTED = re.compile(r"^print\(.*\)  # (.+)$", re.MULTILINE)

_PYPROJECT = """
[tool.dg]
directory_type = "project"
[tool.dg.project]
root_module = "my_project"
"""
_YAML_PROJECT = """
import sys
from pathlib import Path

import dagster as dg

sys.path.insert(0, "src")


def load() -> dg.Definitions:
    return dg.load_from_defs_folder(path_within_project=Path.cwd())
"""


@dataclass
class Page:
    """The code of a page: a script whose line numbers are those of the page, and files."""

    script: str = ""
    files: dict[str, str] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)


def read_page(path: Path) -> Page:
    """Return the code of a page."""
    text = path.read_text(encoding="utf-8")
    page = Page()
    for block in _BLOCK.finditer(text):
        code, group = block["hidden"], "hidden"
        if code is None:
            code, group = block["code"], "code"
            name = _FILE.match(code)
            if block["skipped"]:
                continue
            if name:
                page.files[name[1]] = code
                continue
            if block["language"] != "python":
                continue
            page.printed += _PRINTED.findall(code)
        line = text.count("\n", 0, block.start(group))
        page.script += "\n" * (line - page.script.count("\n")) + code
    return page


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


CODE = {name_of(path): page for path in PAGES if (page := read_page(path)).script}


# The pages take half a minute of computing together; the README shows that the test works.
_SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in CODE if name != "README.md"]


@pytest.mark.parametrize("name", ["README.md", *_SLOW])
def test_the_code_of_a_page_runs_and_prints_as_commented(
    name: str, warm_dagster: WarmPython, tmp_path: Path
) -> None:
    page = CODE[name]
    files = page.files | {"pyproject.toml": _PYPROJECT, "yaml_project.py": _YAML_PROJECT}
    for file, content in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content)
    (tmp_path / "script.py").write_text(page.script)

    printed = iter(warm_dagster.run(SCRIPT, "script.py", folder=tmp_path).splitlines())

    missing = [line for line in page.printed if line not in printed]  # in this order
    assert missing == []


def test_each_yaml_block_is_a_file_or_gives_a_reason() -> None:
    blocks = [
        (name_of(path), block)
        for path in PAGES
        for block in _BLOCK.finditer(path.read_text(encoding="utf-8"))
        if block["language"] == "yaml"
    ]

    assert blocks
    assert [
        (name, block["code"])
        for name, block in blocks
        if not block["skipped"] and not _FILE.match(block["code"])
    ] == []


_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def links() -> Iterator[tuple[Path, str]]:
    for path in PAGES:
        for target in _LINK.findall(_FENCED.sub("", path.read_text(encoding="utf-8"))):
            if not target.startswith(("http", "#", "mailto:")):
                yield path, target.partition("#")[0]


def test_links_between_pages_lead_to_files() -> None:
    missing = [(name_of(path), link) for path, link in links() if not (path.parent / link).exists()]

    assert missing == []


def test_files_that_pages_name_exist() -> None:
    pattern = re.compile(r"`((?:dagster_dataops|tests|benchmarks|docs|examples|\.ci)/[\w/.-]+)`")
    named = {(name_of(path), file) for path in PAGES for file in pattern.findall(path.read_text())}

    assert named
    assert sorted(pair for pair in named if not (ROOT / pair[1]).exists()) == []


def test_pictures_are_small() -> None:
    pictures = list((DOCS / "images").iterdir())

    assert pictures
    assert [path.name for path in pictures if path.stat().st_size > 150_000] == []


def test_the_reference_describes_every_public_name_once() -> None:
    text = "".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))
    directive = r"^\.\. (?:py:data|auto\w+):: {}\.(\w+)$"
    for package in (dagster_dataops, dagster_dataops.assets):
        described = re.findall(directive.format(package.__name__), text, re.MULTILINE)
        assert sorted(described) == package.__all__


def first_cells(page: str, header: str) -> list[str]:
    """Return the names in the first cells of a table."""
    _, _, table = (DOCS / page).read_text().partition(f"{header}\n|---|---|---|\n")
    return re.findall(r"^\| `(\w+)`", table.partition("\n\n")[0], re.MULTILINE)


def test_the_tables_of_settings_are_complete() -> None:
    settings = first_cells("concepts/operators.md", "| setting | meaning | default |")
    attributes = first_cells(
        "reference/configuration.md", "| attribute of `config` | meaning | default |"
    )

    assert sorted(settings) == sorted(SETTING_NAMES)
    public = {name for name, one in vars(Configuration).items() if isinstance(one, property)}
    assert set(attributes) == public


def test_the_reference_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / "reference/configuration.md").read_text()
    listed = re.findall(r"^\| `python -m dagster_dataops (\w+)", text, re.MULTILINE)
    with pytest.raises(SystemExit):
        main(["--help"])

    (commands,) = set(re.findall(r"{([\w,]+)}", capsys.readouterr().out))
    assert sorted(listed) == sorted(commands.split(","))


def test_the_architecture_lists_the_layers_that_are_checked() -> None:
    text = (DOCS / "architecture.md").read_text()
    (listed,) = re.findall(r"^```text\n(checks .*?)^```", text, re.MULTILINE | re.DOTALL)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (one["layers"] for one in contracts["contracts"] if one["id"] == "layers")
    reserved = re.compile(r" \| \(\w+\)|\(\w+\) \| ")
    layers = [reserved.sub("", layer) for layer in layers]

    assert [line.partition("  ")[0] for line in listed.splitlines()] == layers
