"""Progress: the interface that shows the state of a run, and the progress bar for plain Python."""

import logging
import sys
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import percentage
from dagster_dataops.operators.outcomes.record_context import plain_counts

_LOG: Final = logging.getLogger("dagster_dataops")
_FIRST_LINE_SECONDS: Final = 10.0
_LINE_GROWTH: Final = 1.3
_FIRST_BAR_SECONDS: Final = 0.2  # seconds; shorter runs show the bar once, at the end
_LONGEST_PAUSE_SECONDS: Final = 600.0
_COST: Final = "cost"  # the sum that is shown as money
_UNPRICED: Final = "calls_without_usage"  # if there are any, a part of the cost is estimated


class ProgressState(NamedTuple):
    """The state of a run.

    Attributes:
        records: Settled input records, those of earlier attempts included.
        failed: Failed records among them.
        input_bytes: Settled input bytes.
        total_bytes: Bytes of the whole input.
        total_records: Records of the whole input; ``None`` if they are not counted.
        resumed: Records that earlier attempts settled.
        counts: Sums of the operator's counts.
    """

    records: int
    failed: int
    input_bytes: int
    total_bytes: int
    total_records: int | None
    resumed: int
    counts: Mapping[str, float] = MappingProxyType({})

    @property
    def estimated_records(self) -> int | None:
        """Total records; estimated from the settled bytes if they are not counted."""
        if self.total_records is not None or not self.input_bytes:
            return self.total_records
        return round(self.records * self.total_bytes / self.input_bytes)

    @property
    def share(self) -> float | None:
        """The settled share of the input, from 0 to 1; ``None`` if it is not known."""
        total = self.estimated_records
        return self.records / total if total else None

    def records_per_second(self, seconds: float) -> float:
        """Return the rate of this attempt after ``seconds`` of work."""
        return (self.records - self.resumed) / seconds if seconds > 0 else 0.0

    def seconds_left(self, seconds: float) -> float | None:
        """Return the time left at that rate; ``None`` if it is not known."""
        total, rate = self.estimated_records, self.records_per_second(seconds)
        return (total - self.records) / rate if total and rate else None

    def describe(self, seconds: float) -> str:
        """Return one line: done, total, rate, time left, failed, counted numbers.

        Args:
            seconds: Duration of this attempt so far.
        """
        total, left = self.estimated_records, self.seconds_left(seconds)
        mark = "~" if self.total_records is None else ""
        of_total = f" of {mark}{total:,}" if total is not None else ""
        share = "" if self.share is None else f" ({percentage(self.share)})"
        pace = self.records_per_second(seconds)
        rate = f", {pace:,.1f} records/s" if pace > 0 else ""
        time_left = "" if left is None else f", {duration(left)} left"
        failed = f", {self.failed:,} failed" if self.failed else ""
        counted = "".join(f", {text}" for text in self._counted())
        return f"{self.records:,}{of_total} records{share}{rate}{time_left}{failed}{counted}"

    def _counted(self) -> Iterator[str]:
        """Yield the cost so far and the cost expected in all, then the other sums."""
        cost = self.counts.get(_COST)
        if cost is not None:
            mark = "~" if self.counts.get(_UNPRICED) else ""
            yield f"{mark}${cost:,.{_digits(cost)}f} so far"
            if self.share:
                expected = cost / self.share
                yield f"{mark}${expected:,.{_digits(expected)}f} expected"
        for name, number in plain_counts(self.counts).items():
            if name != _COST:
                yield f"{name} {_shown(number)}"


def duration(seconds: float) -> str:
    """Return a time in words, such as ``1 h 23 min``, ``8 min 08 s`` or ``38 s``."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, seconds_left = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {seconds_left:02d} s" if minutes else f"{seconds_left} s"


def _shown(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.4f}"


def _digits(cost: float) -> int:
    """Return how many decimals a cost is shown with: small ones need more."""
    return 2 if cost >= 1 or not cost else 4


class Progress(Protocol):
    """Shows the state of a run. Its methods are called from the thread that started the run."""

    def start(self, name: str, state: ProgressState) -> None:
        """Begin to show a run.

        Args:
            name: The name of the node.
            state: The state that earlier attempts left.
        """

    def note(self, text: str) -> None:
        """Show one line that the user should read, such as where the run resumes."""

    def warn(self, name: str, text: str) -> None:
        """Show one line that the user should act on, also before the start and after the end.

        Args:
            name: The name of the node.
            text: The line.
        """

    def update(self, state: ProgressState) -> None:
        """Show the present state; called about ten times a second."""

    def finish(self, state: ProgressState) -> None:
        """End, successfully or not."""


class LogPace:
    """Schedules progress lines at growing intervals.

    Args:
        first_seconds: Seconds until the first line is due.
        growth: Factor from one interval to the next.
        longest_seconds: The longest interval.
    """

    def __init__(
        self,
        first_seconds: float = _FIRST_LINE_SECONDS,
        growth: float = _LINE_GROWTH,
        longest_seconds: float = _LONGEST_PAUSE_SECONDS,
    ) -> None:
        self._pause = first_seconds
        self._growth = growth
        self._longest = longest_seconds
        self.began = time.monotonic()
        self._next = self.began + first_seconds

    def seconds(self) -> float:
        """Return the duration of the run so far."""
        return time.monotonic() - self.began

    def due(self) -> bool:
        """Return whether a line is due now; if so, schedule the next one."""
        if time.monotonic() < self._next:
            return False
        self._pause = min(self._pause * self._growth, self._longest)
        self._next = time.monotonic() + self._pause
        return True


class ConsoleProgress(Progress):
    """Shows a tqdm bar on a terminal, or otherwise lines in the log.

    Args:
        bar: Whether to draw the bar; ``None`` draws it on a terminal and in a notebook.
        seconds_between: The minimum number of seconds between two redraws.
    """

    def __init__(self, *, bar: bool | None, seconds_between: float = 0.1) -> None:
        self._draw = sys.stderr.isatty() or _in_notebook() if bar is None else bar
        self._seconds_between = seconds_between
        self._bar: Any = None
        self._name = ""
        self._pace = LogPace()

    @override
    def start(self, name: str, state: ProgressState) -> None:
        self._name = name
        self._pace = LogPace()
        if self._draw:
            bar = _bar_class()
            bar.monitor_interval = 0  # a monitor thread would prevent forking workers
            self._bar = bar(
                total=state.estimated_records,
                initial=state.records,
                desc=name,
                unit=" records",
                mininterval=self._seconds_between,
                dynamic_ncols=True,
                delay=_FIRST_BAR_SECONDS,
            )

    @override
    def note(self, text: str) -> None:
        _LOG.info("%s%s", f"{self._name}: " if self._name else "", text)

    @override
    def warn(self, name: str, text: str) -> None:
        _LOG.warning("%s: %s", name, text)

    @override
    def update(self, state: ProgressState) -> None:
        if self._bar is not None:
            self._show(state)
        elif self._pace.due():
            _LOG.info("%s: %s", self._name, state.describe(self._pace.seconds()))

    @override
    def finish(self, state: ProgressState) -> None:
        if self._bar is not None:
            self._bar.delay = 0  # show the bar even after a short run
            self._show(state)
            self._bar.close()
            self._bar = None

    def _show(self, state: ProgressState) -> None:
        self._bar.total = state.estimated_records
        if state.failed:
            self._bar.set_postfix(failed=state.failed, refresh=False)
        self._bar.update(state.records - self._bar.n)


def _in_notebook() -> bool:
    """Return whether this process runs the cells of a notebook."""
    kernel = sys.modules.get("ipykernel.kernelapp")
    return kernel is not None and bool(kernel.IPKernelApp.initialized())


def _bar_class() -> Any:
    """Return tqdm's class; in a notebook with ipywidgets, the one that draws a widget."""
    if _in_notebook() and find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm as widget

        return widget
    from tqdm import tqdm

    return tqdm


class Quiet(Progress):
    """Shows nothing."""
