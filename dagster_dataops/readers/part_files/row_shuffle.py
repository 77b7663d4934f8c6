"""Shuffle rows with a seed that may be generated randomly and stored in the state."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from dagster_dataops.streams.stages.shuffling import Shuffle


@dataclass(eq=False)
class RowShuffle(Shuffle):
    """`Shuffle` with a possibly random seed, which a restored state replaces."""

    drawn: bool

    @property
    @override
    def draws_seed(self) -> bool:
        return self.drawn

    @override
    def options(self) -> dict[str, Any]:
        seed = None if self.drawn else self.seed
        return {"shuffle_window": self.shuffle_window, "seed": seed}
