"""Kill runs repeatedly, at random and at chosen moments, and check the results.

python tests/faults/campaign.py --kills 100 --seed 1

Every round runs one input in one mode. Up to five attempts in a row are killed: the parent, a
worker or two, or all, after a random time or at a chosen step of the engine. The next attempt
resumes, until one is not killed. Results are plain, compressed, or in another form in each attempt.
"""

import random
import sys
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import orjson
from typing_extensions import override

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faults.crashing import slowness
from tests.faults.moments import IN_PARENT, IN_WORKER
from tests.faults.rounds import Kill, Round, play_rounds
from tests.faults.tally import Campaign, command
from tests.faults.workloads import WORKLOADS, Row, expected, expected_unique, torn
from tests.journals import SpansEntry, read_journal
from tests.nodes import CheckpointContent, draft_of, existing, published, text_of

_SECOND: Final = 1.0
_LATE: Final = 0.3  # between the end of a call and its being written down, on a busy machine
VICTIMS: Final = ("group", "parent", "worker")
MODES: Final = {
    "process": ("quick", "huge", "uneven", "slow", "flaky"),
    "spawned": ("quick", "uneven", "slow", "flaky"),
    "thread": ("few", "slow"),
    "async": ("few", "slow"),
    "single": ("quick", "slow", "flaky"),
    "selection": ("quick", "slow"),
}
FORMS: Final = {  # of results: those of the attempts of a round
    "plain": ("jsonl",),
    "compressed": ("jsonl.zst",),
    "both": ("jsonl", "jsonl.zst"),
}
_WITH_WORKERS: Final = {"process", "spawned", "selection"}


def run_campaign(
    kills: int,
    seed: int,
    folder: Path,
    *,
    modes: Sequence[str] = tuple(MODES),
    forms: Sequence[str] = tuple(FORMS),
    scale: float = 1,
) -> Campaign:
    """Kill runs until ``kills`` have been killed."""
    chance = random.Random(seed)
    campaign = Campaign()

    def round_of(name: str, mode: str) -> Round:
        drawn = FORMS[chance.choice(forms)]
        round_chance = random.Random(chance.random())
        return _Round(folder / name, mode, round_chance, campaign, scale, drawn)

    return play_rounds(campaign, kills, chance, modes, round_of)


class _Round(Round):
    """One input in one mode."""

    victim = "tests.faults.victim"
    ending_seconds = 2
    begun = 0.8

    def __init__(
        self,
        home: Path,
        mode: str,
        chance: random.Random,
        campaign: Campaign,
        scale: float,
        forms: Sequence[str],
    ) -> None:
        super().__init__(home, mode, chance, campaign)
        self._forms, self._form = forms, ""
        workload = chance.choice(MODES[mode])
        self.arguments = [mode, workload]
        self.victims = VICTIMS if mode in _WITH_WORKERS else VICTIMS[:2]
        self._workload = WORKLOADS[workload]
        self._rows: list[Row] = self._workload.rows(chance, scale)
        self.longest_wait = 0.7 if scale == 1 else 0.3
        self._settled: set[int] = set()
        lines = [orjson.dumps(row) + b"\n" for row in self._rows]
        (home / "input.jsonl").write_bytes(b"".join(lines))
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))

    @override
    def order(self) -> str:
        if self.chance.random() < 0.4:
            return ""
        in_worker = self.kind in _WITH_WORKERS and self.chance.random() < 0.5
        return self.drawn(IN_WORKER if in_worker else IN_PARENT, VICTIMS)

    @override
    def environment(self) -> dict[str, str]:
        self._form = self.chance.choice(self._forms)
        return {"DATAOPS_RESULT_FORMAT": self._form}

    @override
    def check_attempt(self, kills: list[Kill], status: int, *, committed: bool) -> None:
        assert status == 0 or any(kill.victim != "worker" for kill in kills), self.output()
        assert "damaged" not in self.output(), self.output()
        self._check_calls(kills, committed=committed)
        if status:
            self._look_at_checkpoint(kills)

    # ------------------------------------------------------------ calls

    def _check_calls(self, kills: list[Kill], *, committed: bool) -> None:
        """Check that no settled and no long finished record is processed again."""
        first: dict[int, float] = {}
        repeated: dict[int, float] = {}
        for record, moment in sorted(self.calls(), key=lambda call: call[1]):
            if record in first:
                repeated[record] = first[record]
            first.setdefault(record, moment)
        again = sorted(self._settled & first.keys())
        assert not again, f"{len(again)} settled records run again, the first of them {again[0]}"
        assert not (committed and first), f"{len(first)} calls, though only renames were left"
        if any(kill.victim == "worker" for kill in kills):
            self.campaign.again.setdefault(self.kind, []).append(len(repeated))
        self._check_fresh(repeated, [kill for kill in kills if kill.victim == "worker"])

    def _check_fresh(self, lost: dict[int, float], kills: list[Kill]) -> None:
        """Check that no record finished more than a second before a kill is lost."""
        late = _LATE * slowness()
        allowed = (_SECOND + self._workload.longest) * slowness() + late
        for record, moment in lost.items():
            ages = [kill.time - moment for kill in kills]
            assert any(-late <= age <= allowed for age in ages), (
                f"record {record} was finished {ages} s before the kills {kills}, and lost"
            )

    def _look_at_checkpoint(self, kills: list[Kill]) -> None:
        """Record the settled records, and check that no long finished record was lost."""
        before, self._settled = self._settled, self._settled_now()
        gone = before - self._settled
        assert not gone, f"{len(gone)} records are not settled any more"
        lost = {n: moment for n, moment in self.calls() if n not in self._settled}
        self.campaign.again.setdefault(self.kind, []).append(len(lost))
        self.campaign.resumed += bool(self._settled)
        self._check_fresh(lost, kills)

    def _settled_now(self) -> set[int]:
        everything = set(range(len(self._rows)))
        if draft_of(self.node.manifest).exists() or published(self.node):
            return everything
        found = [content for content in existing(self.node.checkpoints) if len(content.table)]
        assert len(found) <= 1, f"{len(found)} checkpoints with settled records"
        settled: set[int] = set()
        for content in found:
            self._check_overlaps(content)
            for span, _, _ in content.table.ordered():
                begin = bisect_left(self._starts, span.start)
                end = bisect_left(self._starts, span.start + span.length)
                settled.update(range(begin, end))
        return settled

    def _check_overlaps(self, content: CheckpointContent) -> None:
        """Check that no two spans of a journal contain the same record."""
        written = 0
        for entry in read_journal(content.folder / "journal"):
            if isinstance(entry, SpansEntry):
                written += len(entry.columns[0])
        assert written == len(content.table), "settled twice: the journal refuses spans of its own"

    # ------------------------------------------------------------ results

    @override
    def check_result(self) -> None:
        node = self.node.as_published()
        assert node.form == self._form, f"the result is {node.form}, not {self._form}"
        result = text_of(node.result)
        if self._workload.differing and self.kind != "selection":
            wrong = next(torn(result, self._rows), None)
            assert wrong is None, wrong
        else:
            wanted = expected_unique if self.kind == "selection" else expected
            assert result == wanted(self._rows), "wrong bytes in the result"
        bad = [row["n"] for row in self._rows if row["bad"]]
        errors = self.node.errors.read_bytes().splitlines() if self.node.errors.exists() else []
        found = [orjson.loads(line) for line in errors]
        assert [row["index"] for row in found] == bad, "wrong error rows"
        for row in found:
            facts = (row["line"], row["message"], row["input"], row["attempts"])
            n = row["index"]
            assert facts == (n + 1, f"bad {n}", self._rows[n], 1), f"wrong error row {row}"
        manifest = orjson.loads(self.node.manifest.read_bytes())
        counts = (manifest["rows_in"], manifest["rows_out"], manifest["failed"])
        assert counts == (len(self._rows), result.count(b"\n"), len(bad)), f"wrong counts {counts}"
        ours = {node.result, self.node.manifest, self.node.path / ".lock"}
        of_failures = {self.node.errors} if bad else set()
        map_of_records = {self.node.kept} if manifest["mapped"] else set()
        stray = set(self.node.path.iterdir()) - ours - of_failures - map_of_records
        assert not stray, f"left over: {sorted(map(str, stray))}"


def main() -> int:
    """Run a campaign from the command line."""
    return command(__doc__, list(MODES), lambda *given: run_campaign(*given[:3], modes=given[3]))


if __name__ == "__main__":
    sys.exit(main())
