"""Figures and their goals, their table, and their file."""

import json
import math
import os
import platform
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measuring import Run


@dataclass(frozen=True)
class Figure:
    """One measured number.

    Attributes:
        workload: The name of its workload.
        name: The measured quantity.
        value: The number.
        unit: The unit of the number.
        least: The goal, if it is a lower bound.
        most: The goal, if it is an upper bound.
        note: Further facts, in a few words.
        runs: The single runs behind it.
    """

    workload: str
    name: str
    value: float
    unit: str
    least: float | None = None
    most: float | None = None
    note: str = ""
    runs: dict[str, list[Run]] = field(default_factory=dict, repr=False)

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; ``None`` without one."""
        if self.least is not None:
            return self.value >= self.least
        return None if self.most is None else self.value <= self.most

    @property
    def goal(self) -> str:
        """The goal in words."""
        if self.least is not None:
            return f">= {self.least:g}"
        return "" if self.most is None else f"<= {self.most:g}"

    def cells(self) -> list[str]:
        """Return the figure as a row of the table."""
        met = {None: "", True: "met", False: "MISSED"}[self.met]
        number = f"{self.value:,.0f}" if abs(self.value) >= 1000 else f"{self.value:.3g}"
        return [self.workload, self.name, number, self.unit, self.goal, met, self.note]


FAILED = "failed"  # the name of a figure that could not be measured
HEAD = ["", "what", "value", "unit", "goal", "", "note"]


def table(figures: Iterable[Figure]) -> str:
    """Return the figures as lines of text with aligned columns."""
    rows = [HEAD, *(figure.cells() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = []
    for row in rows:
        padded = [
            cell.rjust(width) if column == 2 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(" | ".join(padded).rstrip(" |"))
    return "\n".join(lines)


def about_runs(runs: dict[str, list[Run]]) -> str:
    """Return the load of the machine before the runs, in words."""
    loads = [run.load for found in runs.values() for run in found]
    return f"load {min(loads):.1f}-{max(loads):.1f}" if loads else ""


def save(figures: list[Figure], folder: Path) -> Path:
    """Write the figures and every run behind them as JSON; return the path."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
    content: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "load": os.getloadavg(),
        "figures": [_plain(figure) for figure in figures],
    }
    path.write_text(json.dumps(content, indent=1, default=str), encoding="utf-8")
    return path


def _plain(figure: Figure) -> dict[str, Any]:
    """Return a figure in a form that JSON can hold, without NaN."""
    value = None if math.isnan(figure.value) else figure.value
    return asdict(figure) | {"value": value, "met": figure.met}
