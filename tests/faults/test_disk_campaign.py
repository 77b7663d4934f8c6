"""Samples of the campaigns of disk faults: disturbed calls, and losses of power.

Without arguments, `disk_campaign.py` tries every case of every scenario.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.filecalls import built, compiler, preloaded

_CAMPAIGN = Path(__file__).with_name("disk_campaign.py")
_POWER = {
    "fresh": ["single", "process"],
    "over": ["single"],
    "again": ["single"],
    "resume": ["thread"],
    "stopped": ["single"],
    "retry": ["single"],
    "retry-unfinished": ["single"],
    "reuse": ["single", "thread"],
    "selection": ["single"],
    "split": ["single"],
    "split-parts": ["single"],
    "retry-split": ["single"],
    "parts": ["single"],
    "parts-again": ["single"],
    "retry-parts": ["single"],
    "join": ["single"],
    "artefact": ["single"],
    "export": ["single"],
    "gather": ["single"],
    "combine": ["single"],
    "stream-over": ["single"],
    "stream-quarantine": ["single"],
    "stream-stopped": ["single"],
    "source": ["single"],
}
_DISTURBED = {
    "over": ["process"],
    "resume": ["single"],
    "retry": ["single"],
    "reuse": ["single"],
    "selection": ["single"],
    "split": ["single"],
    "split-parts": ["single"],
    "retry-split": ["single"],
    "parts": ["single"],
    "parts-again": ["single"],
    "retry-parts": ["single"],
    "join": ["single"],
    "artefact": ["single"],
    "export": ["single"],
    "stream-over": ["single"],
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        compiler() is None,
        reason="the recording library needs a C compiler on Linux",
    ),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("filecalls"))


Run = Callable[..., str]


@pytest.fixture
def run(library: Path, tmp_path: Path) -> Run:
    """Run campaigns of one scenario, in some modes, in a process with the library."""

    def run(campaigns: list[str], scenario: str, modes: list[str], *numbers: str) -> str:
        folder = tmp_path / "campaign"
        folder.mkdir()
        given = [*campaigns, "--scenarios", scenario, "--modes", *modes, *numbers]
        done = subprocess.run(
            [sys.executable, str(_CAMPAIGN), *given],
            env=preloaded(library, folder),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert " 0 wrong" in done.stdout
        return done.stdout

    return run


@pytest.mark.parametrize("scenario", _POWER)
def test_a_loss_of_power_at_any_call_loses_no_safe_data(run: Run, scenario: str) -> None:
    run(["power"], scenario, _POWER[scenario], "--cases", "20")


@pytest.mark.parametrize("scenario", ["over", "split", "split-parts", "export"])
def test_a_loss_of_power_at_any_call_of_publishing_leaves_one_whole_result(
    run: Run, scenario: str
) -> None:
    run(["power"], scenario, ["single"], "--late", "18", "--cases", "60")


@pytest.mark.parametrize("scenario", _DISTURBED)
def test_a_run_resumes_after_a_kill_at_any_call(run: Run, scenario: str) -> None:
    run(["kill"], scenario, _DISTURBED[scenario], "--cases", "10")


@pytest.mark.parametrize("scenario", _DISTURBED)
def test_a_run_resumes_after_an_error_of_any_call(run: Run, scenario: str) -> None:
    run(["error"], scenario, _DISTURBED[scenario], "--cases", "10")


def test_all_campaigns_run_if_none_is_named(run: Run) -> None:
    lines = run([], "fresh", ["single"], "--cases", "1").splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["power", "kill", "error"]
