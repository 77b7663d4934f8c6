"""The code of README.md and of the documentation runs: `tests.pages` says how a page is marked."""

import re
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import dagster_dataops
from dagster_dataops.configuration import Configuration
from tests.command_line import main
from tests.documented_names import SETTING_NAMES, public_names
from tests.pages import BLOCK, DOCS, FILE, PAGES, ROOT, read_page
from tests.warm_python import DAGSTER, SCRIPT, WarmPython


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


_WARM = (
    "aiohttp",
    "dagster_dataops.assets.components.attributes",
    "dagster_dataops.pipelines.reporting.node_facts",
    "dagster_dataops.streams.data_pipeline",
    "dagster_dataops.training.cooking.crude_streams",
    "dagster_openlineage",
    "fsspec",
    "ftfy",
    "jinja2",
    "numpy",
    "requests",
)
CODE = {name_of(path): page for path in PAGES if (page := read_page(path)).script}


@pytest.fixture(scope="module")
def warm_pages() -> Iterator[WarmPython]:
    """Return an interpreter that has imported what several pages need."""
    with WarmPython(*DAGSTER, *filter(find_spec, _WARM)) as warm:
        yield warm


# The pages take half a minute of computing together; the README shows that the test works.
_SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in CODE if name != "README.md"]


@pytest.mark.parametrize("name", ["README.md", *_SLOW])
def test_the_code_of_a_page_runs_and_prints_as_commented(
    name: str, warm_pages: WarmPython, tmp_path: Path
) -> None:
    page = CODE[name]
    page.write(tmp_path)

    assert page.missing(warm_pages.run(SCRIPT, "script.py", folder=tmp_path)) == []


def test_each_yaml_block_is_a_file_or_gives_a_reason() -> None:
    blocks = [
        (name_of(path), block)
        for path in PAGES
        for block in BLOCK.finditer(path.read_text(encoding="utf-8"))
        if block["language"] == "yaml"
    ]

    assert blocks
    assert [
        (name, block["code"])
        for name, block in blocks
        if not block["skipped"] and not FILE.match(block["code"])
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
    text = text.replace("dagster_dataops.crude.crude", "dagster_dataops.crude")  # it can be called
    directive = r"^\.\. (?:py:data|auto\w+):: {}\.(\w+)$"
    for package in (dagster_dataops, dagster_dataops.assets):
        described = re.findall(directive.format(package.__name__), text, re.MULTILINE)
        assert sorted(described) == public_names(package.__name__)


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
    listed = re.findall(r"^\| `python -m dagster_dataops ([\w-]+)", text, re.MULTILINE)
    with pytest.raises(SystemExit):
        main(["--help"])

    (commands,) = set(re.findall(r"{([\w,-]+)}", capsys.readouterr().out))
    assert sorted(listed) == sorted(commands.split(","))


def test_the_architecture_lists_the_layers_that_are_checked() -> None:
    text = (DOCS / "architecture.md").read_text()
    (listed,) = re.findall(r"^```text\n(checks .*?)^```", text, re.MULTILINE | re.DOTALL)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (one["layers"] for one in contracts["contracts"] if one["id"] == "layers")
    reserved = re.compile(r" \| \(\w+\)|\(\w+\) \| ")
    layers = [reserved.sub("", layer) for layer in layers]

    assert [line.partition("  ")[0] for line in listed.splitlines()] == layers
