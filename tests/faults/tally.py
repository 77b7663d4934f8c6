"""Campaign: the results of a number of kills, and the command that prints them."""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Campaign:
    """The results of a number of kills.

    Attributes:
        kills: Number of kills by kind, victim and moment.
        again: Records processed again for each kill, by kind.
        oldest: Seconds between the end of the oldest of them and its kill, if known.
        resumed: Number of attempts that resumed a checkpoint.
        failures: Broken promises, in words.
    """

    kills: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    again: dict[str, list[int]] = field(default_factory=dict)
    oldest: float = 0.0
    resumed: int = 0
    failures: list[str] = field(default_factory=list)

    def table(self) -> str:
        """Return the figures as text."""
        victims = sorted({victim for _, victim, _ in self.kills})
        rows = []
        for place, name in ((0, "kind"), (2, "moment")):
            rows.append(f"{name:14}" + "".join(f"{victim:>9}" for victim in victims))
            counts = Counter((key[place], key[1]) for key in self.kills.elements())
            rows += [
                f"{one:14}" + "".join(f"{counts[one, victim]:9}" for victim in victims)
                for one in sorted({one for one, _ in counts})
            ]
        again = (f"{kind} {max(counts)}" for kind, counts in self.again.items())
        age = f"; the oldest {self.oldest:.2f} s old" if self.oldest else ""
        rows.append(f"worked on again at most: {', '.join(again)}{age}")
        total, failed = sum(self.kills.values()), len(self.failures)
        rows.append(f"{total} kills, {self.resumed} resumed, {failed} failures")
        return "\n".join([*rows, *self.failures])


def command(
    description: str | None,
    kinds: Sequence[str],
    run: Callable[[int, int, Path, Sequence[str]], Campaign],
) -> int:
    """Run a campaign from the command line and return its status."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--keep", type=Path, help="where failed rounds leave their files")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        campaign = run(given.kills, given.seed, given.keep or Path(folder), given.kinds)
    sys.stdout.write(campaign.table() + "\n")
    return 1 if campaign.failures else 0
