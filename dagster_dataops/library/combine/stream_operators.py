"""Group ``combine``: stream operators that make one result of several.

They have the semantics of the `DataPipeline` functions of the same names. Their assets depend
exactly on the inputs, and a killed run resumes at its position.
"""

from collections.abc import Sequence
from typing import Any

from dagster_dataops.data import data_register
from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.streams.data_pipeline import DataPipeline
from dagster_dataops.streams.operations import Operations

_group: Any = data_register.new_group("combine")


class Sample(_group):
    """Choose records by weight, until every input has ended once.

    An input that has ended starts again, so that the weights hold to the end. With
    ``allow_repeats=False`` its weight is given to the others, so that every record is taken once.
    Without ``weights`` all inputs are equally frequent. Without ``seed`` one is derived that is the
    same in every run.

    Args:
        weights: A number for each input, in their order; ``None`` for equal ones.
        seed: Another number makes another choice; ``None`` derives one, the same in every run.
        allow_repeats: Whether an input that has ended starts again.
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
    """Take one record of each input in turn, until every input has ended once.

    With ``stop_at_shortest`` it stops when the first input ends. An input that has ended starts
    again while others continue. With ``allow_repeats=False`` it is left out, so that every record
    is taken once.

    Args:
        stop_at_shortest: Whether to stop when the first input ends.
        allow_repeats: Whether an input that has ended starts again.
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
    """Combine one record of each input into one: side by side under ``names``, or merged.

    With ``flatten`` the keys of all records are merged. Inputs must have the same length, unless
    ``zip_to_shortest`` drops the rest of the longer ones.

    Args:
        names: Columns of the records, one for each input; ``None`` with ``flatten``.
        zip_to_shortest: Whether the rest of longer inputs is dropped.
        flatten: Whether the keys of all records are merged into one record.
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
            reason = "a result holds dicts: pass names, one for each input, or flatten=True"
            raise StreamDefinitionError("zip", reason)
        self._names, self._shortest, self._flatten = names, zip_to_shortest, flatten

    def stream(self, *streams: Operations) -> Operations:
        return DataPipeline.zip(
            *streams, names=self._names, zip_to_shortest=self._shortest, flatten=self._flatten
        )


class Concat(_group):
    """Yield the records of one input after another."""

    def stream(self, *streams: Operations) -> Operations:
        return DataPipeline.concat(*streams)
