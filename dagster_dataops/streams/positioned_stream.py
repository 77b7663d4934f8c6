"""The base of streams that can be read: a position, states and failure handling."""

import logging
import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import cached_property
from inspect import GEN_RUNNING, GEN_SUSPENDED, getgeneratorstate
from pathlib import Path
from types import GeneratorType
from typing import Any, Final, Self
from weakref import WeakSet

from dagster_dataops.errors import DataPipelineError, StreamDefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.url_forms import check_local
from dagster_dataops.streams.core.arguments import check_count, check_seed
from dagster_dataops.streams.core.item_failures import (
    FAILURE_TOLERANCE,
    POLICIES,
    FailureHandler,
    OnError,
    OnFailure,
    check_unbroken,
)
from dagster_dataops.streams.core.stage import Cursor, ReadContext, Stage, restoring
from dagster_dataops.streams.core.stage_tree import share_of
from dagster_dataops.streams.core.unused_results import warn_if_unused
from dagster_dataops.streams.identity.held_objects import HeldObjects
from dagster_dataops.streams.identity.stream_identity import (
    VERSION,
    changed_since_seen,
    earlier_codes,
    fingerprint,
    see_code,
    unwrap_state,
    with_present_code,
)
from dagster_dataops.streams.operations import Operations
from dagster_dataops.streams.stages.taking import Take

_LOGGER: Final = logging.getLogger(__name__)


class _MovedError(Exception):
    """Raised in an iterator when its stream goes to another position."""


def _until_read() -> Generator[None]:
    """Yield to `_end_reading` each time that it moves the stream, until an item is asked for."""
    while True:
        try:
            yield
        except _MovedError:
            continue
        return


class _Readers(WeakSet[Generator[Any]]):
    """The iterators of a stream. They stay behind when it is sent to another process."""

    @override
    def __reduce__(self) -> Any:
        return _Readers, ()


class PositionedStream(Operations):
    """A stream with a position that all its iterators share.

    So an iterator that has begun goes on at the new position after `reset` and `load_state_dict`;
    one that has ended stays ended.

    Args:
        stage: The last stage.
        on_error: The handling of an item on which a stage fails: ``raise`` ends the stream,
            ``skip`` continues, ``quarantine`` continues and stores the item. A function of the
            error and the item is called in the process that reads the stream, which continues
            unless the function raises an error.
        max_errors: The largest number of failed items to accept; ``None`` for no limit.
        quarantine: A jsonl file for failed items, with ``on_error="quarantine"``.
        seed: The root seed, for all stages without a seed.
        failure_tolerance: The number of items in a row on which a stage may fail, if failed items
            do not end the stream; ``None`` for no limit.

    Attributes:
        on_error: The handling of items on which a stage fails.
        seed: The root seed.
        held_objects: The objects of functions that count as other ones in the identity.
    """

    def __init__(
        self,
        stage: Stage,
        *,
        on_error: OnError | OnFailure = "raise",
        max_errors: int | None = None,
        quarantine: str | os.PathLike[str] | None = None,
        seed: int = 0,
        failure_tolerance: int | None = FAILURE_TOLERANCE,
    ) -> None:
        super().__init__(stage)
        self._on_failure = on_error if callable(on_error) else None
        self.on_error: OnError = "skip" if callable(on_error) else on_error
        if self.on_error not in POLICIES:
            raise StreamDefinitionError("stream", f"on_error is {on_error!r}, not of {POLICIES}")
        if quarantine is not None and on_error != "quarantine":
            reason = "a quarantine file needs on_error='quarantine'"
            raise StreamDefinitionError("stream", reason)
        check_local("quarantine", quarantine)
        check_seed("stream", seed)
        if max_errors is not None:
            check_count("stream", "max_errors", max_errors, 0)
        if failure_tolerance is not None:
            check_count("stream", "failure_tolerance", failure_tolerance, 1)
        self._failure_tolerance = failure_tolerance
        self._path = None if quarantine is None else Path(quarantine)
        self._max_errors = max_errors
        self.seed = seed
        self._failure: BaseException | None = None
        self._failures, self._cursor = self._opened()
        self._items: Iterator[Any] | None = None  # what all iterators read
        self._readers = _Readers()  # these iterators
        self._is_closed = False  # since the last item
        self._closes_later = False
        self.held_objects = HeldObjects()
        self._has_begun = self._is_reported = False

    def _opened(self) -> tuple[FailureHandler, Cursor]:
        failures = FailureHandler(
            self.on_error,
            self._max_errors,
            self._path,
            self._failure_tolerance,
            share_of(self.stage),
        )
        failures.on_failure = self._on_failure
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
        """Stop the threads and processes that read ahead. The position stays.

        Raises:
            DataPipelineError: The stream is reading an item.
        """
        self._check_idle("close()")
        self._close()

    def close_later(self) -> None:
        """Close the stream now, or when the iterator that is reading an item is dropped."""
        if self.is_reading:
            self._closes_later = True
        else:
            self._close()

    def _close(self) -> None:
        self._closes_later = False
        if self._items is not None:
            self._is_closed = True
            self._end_reading()

    def __iter__(self) -> Iterator[Any]:
        """Yield the items from the position of the stream, wherever it goes.

        Raises:
            DataPipelineError: An earlier error has ended the stream.
        """
        reader = self._read()
        self._readers.add(reader)
        return reader

    def _read(self) -> Generator[Any]:
        while True:
            check_unbroken("stream", self._failure)
            items = self._shared_items()
            try:
                for item in items:  # noqa: UP028 - closing this generator must not close `items`
                    yield item
            except _MovedError:
                del items  # nothing else holds it: its threads and processes end
                yield from _until_read()
            except BaseException as error:
                self._leave(items, error)
                raise
            else:
                self._note_changes()
                return

    def _leave(self, items: Iterator[Any], error: BaseException) -> None:
        """Note why an iterator ends: it was closed (``GeneratorExit``), or a function failed."""
        has_failed = getattr(items, "gi_frame", items) is None  # it may have raised GeneratorExit
        if has_failed or not isinstance(error, GeneratorExit):
            self._failure = error
        elif self._closes_later:
            self._close()
        self._note_changes()

    def _note_changes(self) -> None:
        """Note which functions have changed: another stream of them has their identity from before.

        So streams that are made anew for each epoch have states that another process can load.
        """
        if self._has_begun and not sys.is_finalizing():
            changed_since_seen(self.stage, self.held_objects)

    def _shared_items(self) -> Iterator[Any]:
        if self._items is None:
            self._see_code()
            if self._is_closed:
                self._cursor.restore(self._cursor.state())
            self._items, self._is_closed = self._cursor.items(), False
        return self._items

    def _see_code(self) -> None:
        """Take the identity of the functions before the first of them is called."""
        if not self._has_begun:
            self._has_begun = True
            see_code(self.stage, self.held_objects)

    @property
    def is_reading(self) -> bool:
        """Whether an item is being read: by another thread, or by what calls this."""
        return any(getgeneratorstate(reader) == GEN_RUNNING for reader in self._readers)

    def _check_idle(self, call: str) -> None:
        """Raise `DataPipelineError` while an item is read: the position is not known then."""
        if self.is_reading:
            msg = (
                f"{call} was called while the stream reads an item: by one of its functions, by a "
                "signal handler or in another thread; call it between two items"
            )
            raise DataPipelineError(msg)

    def _end_reading(self) -> None:
        """End what the iterators read, with its threads and processes; they go on with the next."""
        items, self._items = self._items, None
        for reader in list(self._readers):
            if getgeneratorstate(reader) == GEN_SUSPENDED:
                reader.throw(_MovedError)
        if isinstance(items, GeneratorType):
            items.close()

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
        """The failed items in quarantine: the first 1,000 since the stream was built.

        Those behind a position that was loaded are not among them.
        """
        return list(self._failures.kept)

    def take_failures(self, other: "PositionedStream") -> None:
        """Begin with the failed items of another stream, which this one goes on with."""
        self._failures.kept = other.quarantined

    @property
    def splits_element(self) -> bool:
        """Whether the loaded position is between several items that one item became."""
        return self._cursor.splits_element()

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
        return fingerprint(self.stage, self.on_error, self.held_objects)

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
        warn_if_unused(Operations)
        return type(self)(
            stage,
            on_error=self._on_failure or self.on_error,
            max_errors=self._max_errors,
            quarantine=quarantine or self._path,
            seed=self.seed if seed is None else seed,
            failure_tolerance=self._failure_tolerance,
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
        self._check_idle("reset()")
        self._end_reading()
        self._is_closed = False
        self._cursor.restart(reset_rng=reset_rng)

    def state_dict(self, strict: bool = True) -> dict[str, Any]:  # noqa: ARG002 - see below
        """Return the position as a JSON object.

        Args:
            strict: No effect: a state is a position, and no item that was read ahead is lost. In
                fairseq2, ``strict=False`` leaves such items out of the state.

        Raises:
            DataPipelineError: An error has ended the stream.
            StreamStateError: A stage holds items that JSON cannot hold.
        """
        check_unbroken("stream", self._failure)
        self._check_idle("state_dict()")
        position = self._cursor.state()
        drawn = {"seeds": self._drawn_seeds} if self._drawn_seeds else {}
        self._report_changes()
        return {
            "version": VERSION,
            "stages": [dict(part) for part in self.parts],
            "position": position,
            "failures": self._failures.state(),
            **drawn,
        }

    def _report_changes(self) -> None:
        """Log once which functions have changed what they keep since reading began."""
        if self._is_reported or not self._has_begun:
            return
        self._is_reported = True
        for place in changed_since_seen(self.stage, self.held_objects):
            _LOGGER.warning(
                "%s: its function has changed what it keeps between calls, such as a cache or a "
                "counter. States hold positions alone: a resumed stream begins without it, so the "
                "items must not depend on it",
                place,
            )

    def as_present(self, stages: Any) -> Any:
        """Return stored stages, with the present code where version 0.2 would have stored theirs.

        Args:
            stages: The stages in a state.
        """
        if stages == self.parts:
            return stages
        return with_present_code(stages, self.parts, self.earlier_codes)

    @property
    def earlier_codes(self) -> list[str]:
        """The code of each stage as version 0.2 has compared it, see `stream_identity`."""
        return earlier_codes(self.stage, self.held_objects)

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
        self._check_idle("load_state_dict()")
        content = unwrap_state(
            state_dict, self.parts, across_weights=across_weights, present=self.as_present
        )
        failures, cursor = self._opened()
        failures.kept = self.quarantined
        with restoring():
            cursor.restore(content["position"])
            failures.restore(content.get("failures", []))
        self._end_reading()
        self._failures, self._cursor, self._is_closed = failures, cursor, False
        self._drawn_seeds = {**self._drawn_seeds, **content.get("seeds", {})}
