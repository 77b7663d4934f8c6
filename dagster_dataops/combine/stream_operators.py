"""Group ``combine``: stream operators that make one result of several.

What they mean is what the combinators of `DataPipeline` mean by the same names. An asset that is
made by one depends on exactly what it combines, and a run of it that was killed goes on where it
was.
"""

from collections.abc import Sequence
from typing import Any

from dagster_dataops.data import data_register
from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.streams.data_pipeline import DataPipeline
from dagster_dataops.streams.operations import Operations

_group: Any = data_register.new_group("combine")


class Sample(_group):
    """Records drawn by weight, until all inputs have ended once.

    An input that has ended begins again, so that weights hold to the end, or leaves its weight to
    the others (``allow_repeats=False``), so that every record comes once. Without ``weights`` all
    are alike; without a ``seed`` one is derived that is the same in every run.
    """

    def __init__(
        self,
        weights: Sequence[float] | None = None,
        *,
        seed: int | None = None,
        allow_repeats: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._weights, self._seed, self._repeats = weights, seed, allow_repeats

    def stream(self, *streams: Operations) -> Operations:
        return DataPipeline.sample(
            *streams, weights=self._weights, seed=self._seed, allow_repeats=self._repeats
        )


class RoundRobin(_group):
    """One record of each input in turn, until all have ended once.

    With ``stop_at_shortest`` the first that ends ends it. An input that has ended begins again
    while others go on, or is left out (``allow_repeats=False``), so that every record comes once.
    """

    def __init__(
        self, *, stop_at_shortest: bool = False, allow_repeats: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._shortest, self._repeats = stop_at_shortest, allow_repeats

    def stream(self, *streams: Operations) -> Operations:
        return DataPipeline.round_robin(
            *streams, stop_at_shortest=self._shortest, allow_repeats=self._repeats
        )


class Zip(_group):
    """Records made of one record of each input: side by side under ``names``, or joined.

    With ``flatten`` their keys become those of one record. Inputs must be equally long, unless
    ``zip_to_shortest`` drops the rest of the longer ones.
    """

    def __init__(
        self,
        names: Sequence[str] | None = None,
        *,
        zip_to_shortest: bool = False,
        flatten: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not names and not flatten:
            reason = "a result holds dicts: give names, one for each input, or flatten=True"
            raise StreamDefinitionError("zip", reason)
        self._names, self._shortest, self._flatten = names, zip_to_shortest, flatten

    def stream(self, *streams: Operations) -> Operations:
        return DataPipeline.zip(
            *streams, names=self._names, zip_to_shortest=self._shortest, flatten=self._flatten
        )


class Concat(_group):
    """The records of one input after those of another."""

    def stream(self, *streams: Operations) -> Operations:
        return DataPipeline.concat(*streams)
