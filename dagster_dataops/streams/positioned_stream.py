"""The base of streams that can be read: a position, states and failure handling."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from typing_extensions import override

from dagster_dataops.configuration import check_local
from dagster_dataops.errors import StreamDefinitionError, StreamStateError
from dagster_dataops.streams.core.arguments import check_count, check_seed
from dagster_dataops.streams.core.item_failures import (
    POLICIES,
    FailureHandler,
    OnError,
    check_unbroken,
)
from dagster_dataops.streams.core.stage import Cursor, ReadContext, Stage
from dagster_dataops.streams.core.stream_identity import VERSION, fingerprint, unwrap_state
from dagster_dataops.streams.operations import Operations
from dagster_dataops.streams.stages.taking import Take


class PositionedStream(Operations):
    """A stream with a position that all its iterators share.

    Args:
        stage: The last stage.
        on_error: The handling of an item on which a stage fails: ``raise`` ends the stream,
            ``skip`` continues, ``quarantine`` continues and stores the item.
        max_errors: The largest number of failed items to accept; ``None`` for no limit.
        quarantine: A jsonl file for failed items, with ``on_error="quarantine"``.
        seed: The root seed, for all stages without a seed.

    Attributes:
        on_error: The handling of items on which a stage fails.
        seed: The root seed.
    """

    def __init__(
        self,
        stage: Stage,
        *,
        on_error: OnError = "raise",
        max_errors: int | None = None,
        quarantine: str | os.PathLike[str] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(stage)
        if on_error not in POLICIES:
            raise StreamDefinitionError("stream", f"on_error is {on_error!r}, not of {POLICIES}")
        if quarantine is not None and on_error != "quarantine":
            reason = "a quarantine file needs on_error='quarantine'"
            raise StreamDefinitionError("stream", reason)
        check_local("quarantine", quarantine)
        check_seed("stream", seed)
        if max_errors is not None:
            check_count("stream", "max_errors", max_errors, 0)
        self._path = None if quarantine is None else Path(quarantine)
        self.on_error: OnError = on_error
        self._max_errors = max_errors
        self.seed = seed
        self._failure: BaseException | None = None
        self._failures, self._cursor = self._opened()
        self._items: Iterator[Any] | None = None
        self._is_closed = False  # since the last item

    def _opened(self) -> tuple[FailureHandler, Cursor]:
        failures = FailureHandler(self.on_error, self._max_errors, self._path)
        return failures, self.stage.open(ReadContext(self.seed, failures))

    def hide_in_failures(self, hide: Callable[[str], str]) -> None:
        """Hide secrets in what is logged and stored about failed items, from this position on.

        Args:
            hide: Returns a text without secrets.
        """
        self._failures.hide = hide

    @override
    def part(self) -> Stage:
        """Return the last stage, to make it part of another stream.

        Raises:
            StreamDefinitionError: An error has ended the stream, or it has options that only a
                whole stream can have.
        """
        if self.is_broken:
            raise StreamDefinitionError("stream", "an error has ended this stream; build it again")
        if self.on_error != "raise" or self.seed:
            reason = (
                "on_error, max_num_warnings and seed belong to the stream that is read: pass them "
                "to and_return() of the combination, not of its parts"
            )
            raise StreamDefinitionError("stream", reason)
        return self.stage

    @override
    def then(self, stage: Stage) -> Any:
        raise StreamDefinitionError(stage.name, "this stream is complete; build on its builder")

    def close(self) -> None:
        """Stop the threads and processes that read ahead. The position stays."""
        if self._items is not None:
            self._items = None
            self._is_closed = True

    def __iter__(self) -> Iterator[Any]:
        """Yield the items from the current position.

        Raises:
            DataPipelineError: An earlier error has ended the stream.
        """
        check_unbroken("stream", self._failure)
        items = self._shared_items()
        try:
            for item in items:  # noqa: UP028 - closing this generator must not close the shared one
                yield item
        except GeneratorExit:
            raise
        except BaseException as error:
            self._failure = error
            raise

    def _shared_items(self) -> Iterator[Any]:
        if self._items is None:
            if self._is_closed:
                self._cursor.restore(self._cursor.state())
            self._items, self._is_closed = self._cursor.items(), False
        return self._items

    @property
    def is_broken(self) -> bool:
        """Whether an error has ended the stream."""
        return self._failure is not None

    @property
    def errors(self) -> int:
        """The number of failed items."""
        return max(self._failures.count, sum(self._failures.state()))

    @property
    def quarantined(self) -> list[dict[str, Any]]:
        """The failed items in quarantine: the first 1,000 since the stream was built."""
        return list(self._failures.kept)

    @property
    def leaves(self) -> list[dict[str, Any]]:
        """Facts about the datasets that the stream mixes, with the number of samples of each."""
        return self._cursor.leaves()

    @cached_property
    def parts(self) -> list[dict[str, str]]:
        """The fingerprint of each stage, as stored in states.

        Raises:
            StreamSourceError: A source cannot be read.
        """
        return fingerprint(self.stage, self.on_error)

    def fresh_copy(
        self, quarantine: str | os.PathLike[str] | None = None, limit: int | None = None
    ) -> Self:
        """Return the same stream at its start, even if an error has ended this one.

        Args:
            quarantine: The file for failed items, if the stream quarantines them and has no file.
            limit: The number of items after which to end; ``None`` for no limit.
        """
        other = self._path or (quarantine if self.on_error == "quarantine" else None)
        return self.with_stage(self.stage if limit is None else Take(self.stage, limit), other)

    @override
    def with_stage(
        self,
        stage: Stage,
        quarantine: str | os.PathLike[str] | None = None,
        *,
        seed: int | None = None,
    ) -> Self:
        """Return a stream with another last stage and the same options, at its start.

        Args:
            stage: The last stage.
            quarantine: The file for failed items; ``None`` for that of this stream.
            seed: The root seed; ``None`` for that of this stream.
        """
        return type(self)(
            stage,
            on_error=self.on_error,
            max_errors=self._max_errors,
            quarantine=quarantine or self._path,
            seed=self.seed if seed is None else seed,
        )

    @property
    def seeds(self) -> dict[str, int]:
        """The seed of each stage that uses one, by path, including seeds restored from a state."""
        return self.given_seeds | self._drawn_seeds

    @property
    def given_seeds(self) -> dict[str, int]:
        """The seeds that are the same each time the stream is built."""
        return self._seeds(drawn=False)

    @cached_property
    def _drawn_seeds(self) -> dict[str, int]:
        return self._seeds(drawn=True)

    def _seeds(self, *, drawn: bool) -> dict[str, int]:
        return {
            stage.path: seed
            for stage in self.stage.ordered()
            if stage.draws_seed is drawn and (seed := stage.seed_in(self.seed)) is not None
        }

    def reset(self, reset_rng: bool = False) -> None:
        """Go to the start of the next epoch; with ``reset_rng``, to that of the first one."""
        check_unbroken("stream", self._failure)
        self._items, self._is_closed = None, False
        self._cursor.restart(reset_rng=reset_rng)

    def state_dict(self) -> dict[str, Any]:
        """Return the position as a JSON object.

        Raises:
            DataPipelineError: An error has ended the stream.
            StreamStateError: A stage holds items that JSON cannot hold.
        """
        check_unbroken("stream", self._failure)
        position = self._cursor.state()
        drawn = {"seeds": self._drawn_seeds} if self._drawn_seeds else {}
        return {
            "version": VERSION,
            "stages": [dict(one) for one in self.parts],
            "position": position,
            "failures": self._failures.state(),
            **drawn,
        }

    def load_state_dict(
        self, state_dict: Mapping[str, Any], *, across_weights: bool = False
    ) -> None:
        """Go to a position that `state_dict` returned; the same items follow.

        Args:
            state_dict: The state.
            across_weights: Whether to accept the state of a stream with other weights. Each dataset
                continues at its position, and further draws follow the new weights.

        Raises:
            StreamStateError: The state does not belong to this stream. The position is not changed.
        """
        check_unbroken("stream", self._failure)
        content = unwrap_state(state_dict, self.parts, across_weights=across_weights)
        failures, cursor = self._opened()
        try:
            cursor.restore(content["position"])
            failures.restore(content.get("failures", []))
        except (TypeError, ValueError, LookupError) as error:
            msg = f"its position is damaged: {type(error).__name__}: {error}"
            raise StreamStateError(msg) from error
        self._failures, self._cursor, self._items = failures, cursor, None
        self._is_closed = False
        self._drawn_seeds = {**self._drawn_seeds, **content.get("seeds", {})}
