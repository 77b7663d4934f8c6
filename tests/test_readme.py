"""Tests of README.md: it is short, its commands are accepted, and its catalogue is complete."""

import re
import shlex
from pathlib import Path

import pytest

from tests.documented_names import GROUPS

TEXT = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_readme_has_at_most_200_lines() -> None:
    assert len(TEXT.splitlines()) <= 200


def test_the_readme_has_two_commands_of_one_line_each() -> None:
    (block,) = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)
    lines = block.splitlines()

    assert [lines[0], lines[2]] == ["# install and materialize", "# test"]
    assert len(lines) == 4


def test_the_catalogue_names_every_group_of_the_library() -> None:
    _, _, after = TEXT.partition("## Catalogue\n\n")
    section = after.partition("\n## ")[0]
    links = re.findall(r"\[`(\w+)`\]\(docs/catalogue/(\w+)\.md\)", section)

    assert sorted(links) == [(group, group) for group in sorted(GROUPS)]


COMMANDS = [
    line.removeprefix("$ ").partition("  #")[0].strip()
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
]


def test_the_ui_is_started_by_the_command_that_dagster_recommends() -> None:
    cli = pytest.importorskip("dagster_dg_cli.cli.dev")
    started = [shlex.split(line)[2:] for line in COMMANDS if line.startswith("dg dev")]

    assert started == [["-f", "definitions.py"], []]
    for arguments in started:
        cli.dev_command.make_context("dg dev", arguments)  # refuses unknown options
    assert not any("dagster dev" in line for line in COMMANDS)


def test_the_history_of_runs_is_kept_before_anything_is_run() -> None:
    home = [at for at, line in enumerate(COMMANDS) if "export DAGSTER_HOME=" in line]
    run = [at for at, line in enumerate(COMMANDS) if re.search(r"dg (dev|launch)", line)]
    installed = [at for at, line in enumerate(COMMANDS) if "dagster-dg-cli" in line]

    assert len(home) == len(installed) == 2
    assert installed[0] < home[0] < run[0] < installed[1] < home[1] < run[1]
