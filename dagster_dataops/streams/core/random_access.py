"""Access: a source whose items can be read by number, in any order."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from typing_extensions import override

from dagster_dataops.streams.core.item_failures import Counter

MISSING: Final = object()


class Numbered(ABC):
    """The items of a source while it is open.

    Attributes:
        size: How many there are, those included that turn out to be none.
    """

    size: int

    @abstractmethod
    def item(self, number: int) -> Any:
        """Return an item; `MISSING` where there is none, which has been dealt with."""


class Joined(Numbered):
    """Items of several sources, numbered on from one to the next."""

    def __init__(self, parts: Sequence[Numbered]) -> None:
        self._parts = parts
        self._firsts = list(accumulate((part.size for part in parts), initial=0))
        self.size = self._firsts.pop()

    @override
    def item(self, number: int) -> Any:
        at = bisect_right(self._firsts, number) - 1
        return self._parts[at].item(number - self._firsts[at])


class Access(ABC):
    """A way to a source whose items have numbers.

    Args:
        counter: Counts what is no item.
    """

    def __init__(self, counter: Counter) -> None:
        self.counter = counter

    @abstractmethod
    def opened(self) -> AbstractContextManager[Numbered]:
        """Open it, for as long as it is read.

        Raises:
            StreamSourceError: It cannot be read.
        """


@dataclass(frozen=True)
class Part:
    """Every ``among``-th place from ``first``; all parts are as large unless ``uneven``."""

    first: int = 0
    among: int = 1
    uneven: bool = True

    def places(self, size: int) -> range:
        """Return the places among ``size`` that are in it."""
        end = size if self.uneven else size - size % self.among
        return range(self.first, end, self.among)
