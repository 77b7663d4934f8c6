"""The base of all streams: a chain of stages, represented by its last stage."""

from typing import Self

from dagster_dataops.selectors.selector import Selector
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.stage import Stage


class StageChain:
    """A stream that can be extended.

    Attributes:
        stage: The last stage.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def part(self) -> Stage:
        """Return the last stage, to make it part of another stream."""
        return self.stage

    def then(self, stage: Stage) -> Self:
        """Return a stream that ends with ``stage``."""
        return type(self)(stage)

    @property
    def finitude(self) -> Finitude:
        """Whether the stream ends. Nothing is read to find out."""
        return self.stage.finitude

    @property
    def endless_stage(self) -> str | None:
        """The stage that makes the stream infinite; ``None`` if it ends."""
        stage = self.stage.endless()
        return None if stage is None else stage.name

    def is_infinite(self) -> bool:
        """Whether the stream is infinite or pseudo-infinite, so never ends by itself."""
        return self.finitude is not Finitude.FINITE


def as_selector(given: str | Selector | None) -> Selector | None:
    """Return ``given`` as a selector."""
    return Selector(given) if isinstance(given, str) else given
