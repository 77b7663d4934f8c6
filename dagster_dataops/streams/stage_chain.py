"""Built: a stream as what it consists of."""

from typing import Self

from dagster_dataops.selectors.selector import Selector
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.stage import Stage


class Built:
    """A stream that can be built on.

    Attributes:
        stage: Its last stage.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def part(self) -> Stage:
        """Return what it consists of, to be part of another stream."""
        return self.stage

    def then(self, stage: Stage) -> Self:
        """Return a stream that ends with ``stage``."""
        return type(self)(stage)

    @property
    def finitude(self) -> Finitude:
        """Whether it ends; found without reading anything."""
        return self.stage.finitude

    @property
    def endless_stage(self) -> str | None:
        """The stage that makes it never end; ``None`` if it ends."""
        stage = self.stage.endless()
        return None if stage is None else stage.name

    def is_infinite(self) -> bool:
        """Whether it is infinite, or pseudo-infinite, and so never ends by itself."""
        return self.finitude is not Finitude.FINITE


def as_selector(given: str | Selector | None) -> Selector | None:
    """Return the selector that was meant."""
    return Selector(given) if isinstance(given, str) else given
