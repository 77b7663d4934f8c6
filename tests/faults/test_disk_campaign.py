"""Samples of the campaigns of disk faults: disturbed calls, and losses of power.

Each run draws other cases; a failure names the seed. Without arguments, `disk_campaign.py` tries
every case of every scenario.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.cases import cases
from tests.faults.filecalls import built, compiler, preloaded
from tests.faults.warm_starts import ENGINE, WarmInterpreter
from tests.subprocesses import killed_at_exit

_CAMPAIGN = Path(__file__).with_name("disk_campaign.py")
_BY_POWER_ALONE = ["power"]
_ALL = ["power", "kill", "error"]
_SCENARIOS = {
    "fresh": (_BY_POWER_ALONE, ["single", "process"]),
    "over": (_ALL, ["process"]),
    "again": (_BY_POWER_ALONE, ["single"]),
    "plain": (_BY_POWER_ALONE, ["single"]),
    "plain-over": (_ALL, ["single"]),
    "kept": (_ALL, ["single"]),
    "restored": (_ALL, ["single"]),
    "short": (_ALL, ["process"]),
    "short-over": (_BY_POWER_ALONE, ["single"]),
    "resume": (_ALL, ["thread"]),
    "stopped": (_BY_POWER_ALONE, ["single"]),
    "retry": (_ALL, ["single"]),
    "retry-unfinished": (_BY_POWER_ALONE, ["single"]),
    "reuse": (_ALL, ["thread"]),
    "selection": (_ALL, ["single"]),
    "files": (_ALL, ["thread"]),
    "split": (_ALL, ["single"]),
    "retry-split": (_ALL, ["single"]),
    "compressed": (_ALL, ["single"]),
    "compressed-over-plain": (_ALL, ["process"]),
    "plain-over-compressed": (_ALL, ["single"]),
    "rewritten": (_ALL, ["single"]),
    "retry-compressed": (_ALL, ["single"]),
    "split-compressed": (_ALL, ["single"]),
    "stream-compressed": (_ALL, ["single"]),
    "parts": (_ALL, ["single"]),
    "retry-parts": (_ALL, ["single"]),
    "join": (_ALL, ["single"]),
    "parted-selection": (_ALL, ["single"]),
    "parted-sort": (_ALL, ["process"]),
    "artefact": (_ALL, ["single"]),
    "export": (_ALL, ["single"]),
    "gather": (_BY_POWER_ALONE, ["single"]),
    "combine": (_BY_POWER_ALONE, ["single"]),
    "stream-over": (_ALL, ["single"]),
    "stream-quarantine": (_BY_POWER_ALONE, ["single"]),
    "stream-stopped": (_BY_POWER_ALONE, ["single"]),
    "source": (_BY_POWER_ALONE, ["single"]),
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        compiler() is None,
        reason="the recording library needs a C compiler on Linux",
    ),
]


Environment = dict[str, str]


@pytest.fixture(scope="module")
def preloading(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("filecalls")
    return preloaded(built(folder), folder)


@pytest.fixture(scope="module")
def interpreter(preloading: Environment) -> Iterator[WarmInterpreter]:
    """Return an interpreter with the library; its processes run one after another."""
    interpreter = WarmInterpreter([*ENGINE, "tests.faults.disk_campaign"], preloading)
    yield interpreter
    interpreter.end()


Run = Callable[..., str]


@pytest.fixture
def run(interpreter: WarmInterpreter, preloading: Environment, tmp_path: Path) -> Run:
    """Run campaigns of one scenario, in some modes, in a process with the library."""

    def run(campaigns: list[str], scenario: str, modes: list[str], *numbers: str) -> str:
        seed = cases(random.SystemRandom().randrange(1_000_000), campaign=1)
        given = [*campaigns, "--scenarios", scenario, "--modes", *modes, *numbers]
        given += ["--seed", str(seed)]
        with (tmp_path / "output.txt").open("w") as output:
            command = [str(_CAMPAIGN), *given]
            started = interpreter.start(
                command, output.fileno(), folder=tmp_path, environment=preloading
            )
        with killed_at_exit(started):
            status = started.wait()
        told = (tmp_path / "output.txt").read_text()
        assert status == 0, f"seed {seed}\n{told}"
        assert " 0 wrong" in told
        return told

    return run


@pytest.mark.parametrize("scenario", _SCENARIOS)
def test_a_loss_of_power_a_kill_or_an_error_at_any_call_loses_no_safe_data(
    run: Run, scenario: str
) -> None:
    campaigns, modes = _SCENARIOS[scenario]
    run(campaigns, scenario, modes, "--cases", cases("3", campaign="10"))


@pytest.mark.parametrize("scenario", ["over", "split", "export"])
def test_a_loss_of_power_at_any_call_of_publishing_leaves_one_whole_result(
    run: Run, scenario: str
) -> None:
    run(["power"], scenario, ["single"], "--late", "18", "--cases", cases("10", campaign="30"))


def test_all_campaigns_run_if_none_is_named(run: Run) -> None:
    lines = run([], "fresh", ["single"], "--cases", "1").splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["power", "kill", "error"]
