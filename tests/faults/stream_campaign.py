"""Kill runs that write a stream repeatedly, and check the results.

python tests/faults/stream_campaign.py --kills 100 --seed 1

Every round writes one kind of stream. Up to five attempts in a row are killed, alone or with all
their workers, after a random time or at a chosen step of the engine; the last one is not killed.
"""

import logging
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson
from typing_extensions import override

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faults.crashing import slowness
from tests.faults.moments import IN_STREAM
from tests.faults.rounds import Kill, Round, play_rounds
from tests.faults.stream_victim import BAD_EVERY, KINDS, make
from tests.faults.tally import Campaign, command
from tests.journals import read_positions

_LATE: Final = 0.5  # between the end of a call and its position, on a busy machine
VICTIMS: Final = ("group", "parent")


def run_stream_campaign(
    kills: int, seed: int, folder: Path, *, kinds: Sequence[str] = KINDS, items: int = 1500
) -> Campaign:
    """Kill runs until ``kills`` have been killed; arguments as `campaign.run_campaign`."""
    chance = random.Random(seed)
    campaign = Campaign()

    def round_of(name: str, kind: str) -> Round:
        return _Round(folder / name, kind, chance, campaign, items)

    return play_rounds(campaign, kills, chance, kinds, round_of)


class _Round(Round):
    """One stream."""

    victim = "tests.faults.stream_victim"
    modules = ("dagster_dataops.streams.factories",)
    ending_seconds = 4
    begun = 0.9
    victims = VICTIMS
    longest_wait = 1.2

    def __init__(
        self, home: Path, kind: str, chance: random.Random, campaign: Campaign, items: int
    ) -> None:
        super().__init__(home, kind, chance, campaign)
        seconds = chance.choice((0.0002, 0.001))
        self._flush = chance.choice((0.05, 0.3, 1.0))
        self.arguments = [kind, str(seconds), str(self._flush)]
        self._latest: dict[int, tuple[float, int]] = {}  # by item: last call, in which attempt
        self._killed: dict[int, float] = {}
        for name, start, count in (("first", 0, items * 2), ("second", items * 2, items)):
            rows = [{"n": n, "text": f"text {n} é"} for n in range(start, start + count)]
            text = b"".join(orjson.dumps(row) + b"\n" for row in rows)
            (home / f"{name}.jsonl").write_bytes(text)

    @override
    def order(self) -> str:
        return self.drawn(IN_STREAM, VICTIMS) if self.chance.random() < 0.5 else ""

    @override
    def check_attempt(self, kills: list[Kill], status: int, *, committed: bool) -> None:
        for kill in kills:
            self._killed[self.attempts] = kill.time
        calls = self.calls()
        assert not (committed and calls), f"{len(calls)} calls, though only renames were left"
        self._check_calls(calls)
        if status:
            self.campaign.resumed += bool(self._positions())

    def _positions(self) -> list[Any]:
        found = sorted(self.node.checkpoints.glob("*/journal"))
        return [one for journal in found for one in read_positions(journal).positions]

    def _check_calls(self, calls: list[tuple[int, float]]) -> None:
        """Check that only items finished in the last second before a kill are processed again."""
        again = 0
        twice = [item for item, count in Counter(n for n, _ in calls).items() if count > 1]
        assert not twice, f"items {twice[:5]} were worked on twice in one attempt"
        for item, moment in calls:
            if item in self._latest:
                again += 1
                last, attempt = self._latest[item]
                age = self._killed[attempt] - last
                self.campaign.oldest = max(self.campaign.oldest, age)
                assert age <= (self._flush + _LATE) * slowness(), (
                    f"item {item} was finished {age:.2f} s before attempt {attempt} was killed, "
                    f"with {self._flush} s between positions, and worked on again"
                )
            self._latest[item] = moment, self.attempts
        if self.attempts > 1:
            self.campaign.again.setdefault(self.kind, []).append(again)

    @override
    def check_result(self) -> None:
        stream = make(self.home, self.kind, 0)
        wanted = b"".join(orjson.dumps(item) + b"\n" for item in stream)
        assert self.node.result.read_bytes() == wanted, "wrong bytes in the result"
        manifest = orjson.loads(self.node.manifest.read_bytes())
        counts = (manifest["rows_out"], manifest["failed"])
        assert counts == (wanted.count(b"\n"), stream.errors), f"wrong counts {counts}"
        errors = self.node.errors.read_bytes().splitlines() if self.node.errors.exists() else []
        found = [orjson.loads(line) for line in errors]
        kept = [(entry["message"], entry["item"]) for entry in stream.quarantined]
        assert [(row["message"], row["input"]) for row in found] == kept, "wrong error rows"
        assert all(row["input"]["n"] % BAD_EVERY == 5 for row in found)
        ours = {self.node.result, self.node.manifest, self.node.path / ".lock"}
        stray = set(self.node.path.iterdir()) - ours - ({self.node.errors} if errors else set())
        assert not stray, f"left over: {sorted(map(str, stray))}"


def main() -> int:
    """Run a campaign from the command line."""
    logging.getLogger("dagster_dataops").setLevel(logging.ERROR)  # warnings about skipped items
    return command(__doc__, KINDS, lambda *given: run_stream_campaign(*given[:3], kinds=given[3]))


if __name__ == "__main__":
    sys.exit(main())
