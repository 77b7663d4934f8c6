"""`DataLoader2`: read a stream epoch by epoch, with a reading service, from any position."""

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.writer import write_records
from dagster_dataops.errors import DataPipelineError, StreamArgumentError, StreamStateError
from dagster_dataops.streams.core.arguments import is_seed
from dagster_dataops.streams.core.item_failures import MAX_KEPT, check_unbroken
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.identity.held_objects import HeldObjects
from dagster_dataops.streams.operations import Operations
from dagster_dataops.streams.positioned_stream import PositionedStream
from dagster_dataops.training.loading.iteration import DataLoader2Iterator, RestOfEpoch
from dagster_dataops.training.loading.rank_states import StateRanks
from dagster_dataops.training.loading.reading_service import (
    InProcessReadingService,
    IterResetFn,
    ReadingServiceInterface,
)
from dagster_dataops.training.loading.seed_generator import SeedGenerator
from dagster_dataops.training.loading.service_session import ServiceSession

VERSION: Final = 1
_LOGGER: Final = logging.getLogger(__name__)
_SHUT_DOWN: Final = "the loader has been shut down; make a new one, and load a state to go on"

Adapter: TypeAlias = Callable[[Operations], Operations]


class DataLoader2:
    """Read a stream epoch by epoch: each iterator is an epoch, with its own order.

    The position is that of the stream, whatever reads it: a state can be loaded with any reading
    service, any number of worker processes and any number of ranks.

    Only the newest iterator can be read: it ends the epoch of the one before, unless that one has
    yielded nothing. After an error the loader is shut down.

    Args:
        datapipe: The stream. One from ``and_return()`` keeps its options; its position is not used.
        datapipe_adapter_fn: A function from the stream to the stream to read, or several.
        reading_service: The way to read it; in this process if ``None``. The loader uses a copy.

    Raises:
        StreamArgumentError: ``datapipe`` is no stream, or the service is none or cannot be pickled.
    """

    _is_shut_down = True  # until it is complete: `__del__` is called even if __init__ fails
    _process = 0

    def __init__(
        self,
        datapipe: Operations,
        datapipe_adapter_fn: Adapter | Iterable[Adapter] | None = None,
        reading_service: ReadingServiceInterface | None = None,
    ) -> None:
        adapters = datapipe_adapter_fn or ()
        for adapter in (adapters,) if callable(adapters) else adapters:
            datapipe = adapter(datapipe)
        self._options = _positioned(datapipe)
        service = InProcessReadingService() if reading_service is None else reading_service
        self._held_objects = HeldObjects()
        builder = DataPipelineBuilder(self._options.stage)
        self._session = ServiceSession(service, builder, self._held_objects)
        self._seed, self._epoch = self._options.seed, 0
        self._next_seed: int | None = None
        self._stream: PositionedStream | None = None  # that of the service
        self._is_made_anew = False  # by a function of the service, for this epoch alone
        self._position: Literal["start", "loaded", "read"] = "start"
        self._rest: RestOfEpoch | None = None  # what the live iterator reads
        self._has_read = False  # an item of the epoch, or since a state was loaded
        self._loaded_ranks: Any = None  # those of the loaded state
        self._failures_before: list[dict[str, Any]] = []  # of streams that were read before
        self._errors_before = 0
        self._failure: BaseException | None = None
        self._is_shut_down = False
        self._process = os.getpid()

    @classmethod
    def from_state(
        cls,
        state: Mapping[str, Any],
        datapipe: Operations,
        reading_service: ReadingServiceInterface | None = None,
    ) -> Self:
        """Return a loader at a position.

        Args:
            state: What `state_dict` of a loader of the same stream returned. It holds a position
                and no code, so the stream is given as well.
            datapipe: The stream.
            reading_service: The way to read it; any other one than before, too.

        Raises:
            StreamStateError: The state is none of a loader, or belongs to another stream.
            StreamArgumentError: See `DataLoader2`.
        """
        loader = cls(datapipe, reading_service=reading_service)
        loader.load_state_dict(state)
        return loader

    def seed(self, seed: int) -> None:
        """Set the seed. The next iterator reads the first epoch of it.

        Raises:
            StreamArgumentError: It is no integer from 0 to 2^64 - 1.
            StreamStateError: A state with another seed was loaded, and is not read yet.
        """
        if not is_seed(seed):
            reason = f"seed is {seed!r}; it must be an integer from 0 to 2^64 - 1"
            raise StreamArgumentError("DataLoader2", reason)
        if self._position != "loaded":
            self._next_seed = seed
        elif seed != self._seed:
            reason = (
                f"one with the seed {self._seed} is loaded, and the seed {seed} would drop its "
                "position; set the seed before load_state_dict()"
            )
            raise StreamStateError(reason)

    # ------------------------------------------------------------ epochs

    def __iter__(self) -> DataLoader2Iterator:
        """Return an iterator over the next epoch, or over the rest of one that was loaded.

        Raises:
            DataPipelineError: The loader is shut down.
        """
        self._check_open()
        try:
            self._rest = self._next_rest()
        except BaseException as error:
            self.fail(error)
            raise
        self._position = "read"
        return DataLoader2Iterator(self, self._rest)

    def _next_rest(self) -> RestOfEpoch:
        live = self._rest
        if live is not None and not live.has_read and self._next_seed is None:
            return live.successor()
        self._end_iteration()
        if self._position == "read" and self._next_seed is None:
            self._go_to_next_epoch()
        return RestOfEpoch(iter(self._begun_iteration()))

    def _begun_iteration(self) -> PositionedStream:
        """Begin an epoch and return its stream."""
        stream = self._begun()
        generator = SeedGenerator(self._seed, "epoch", self._epoch)
        reset = self._session.begin_iteration(generator)
        if self._position == "start" and self._take_seed(generator):
            stream = self._opened(self._session.begin())
        self._stream = stream if reset is None else self._reset(stream, reset)
        self._is_made_anew = self._stream is not stream
        return self._stream

    def _take_seed(self, generator: SeedGenerator) -> bool:
        """Take the seed that a service set for the epoch; return whether the stream changes."""
        before = (self._seed, self._epoch)
        self._seed = generator.root
        if generator.has_restarted:  # it is the first epoch of that seed
            self._epoch = 0
        return before != (self._seed, self._epoch)

    def _begun(self) -> PositionedStream:
        """Return the stream at its position; begin the service if it has not begun."""
        if self._next_seed is not None:
            self._seed, self._epoch, self._position = self._next_seed, 0, "start"
            self._leave_stream()
            self._next_seed = None
            self._has_read = False
        if self._stream is None:
            self._stream = self._opened(self._session.begin())
        return self._stream

    def _reset(self, stream: PositionedStream, reset: IterResetFn) -> PositionedStream:
        """Return the stream that the function of the service made for this epoch."""
        adapted = self._session.begin()
        fresh = self._session.stream_of_epoch(reset)
        if fresh.stage is adapted.stage:
            return stream
        opened, position = self._opened(fresh), stream.state_dict()
        at_start = self._position == "start" or position == self._opened(adapted).state_dict()
        if opened.parts == stream.parts or not at_start:
            opened.load_state_dict(position)
        return opened

    def _opened(self, adapted: Operations) -> PositionedStream:
        """Return a stream at the start of the present epoch."""
        stream = self._at_start(adapted, self._seed)
        for _ in range(self._epoch):
            stream.reset()
        return stream

    def _at_start(self, adapted: Operations, seed: int) -> PositionedStream:
        """Return a stream at the start of the first epoch."""
        stream = self._options.with_stage(adapted.part(), seed=seed)
        stream.held_objects = self._held_objects
        return stream

    def _go_to_next_epoch(self) -> None:
        self._epoch += 1
        self._position, self._has_read = "start", False
        if self._stream is not None and self._is_made_anew:
            self._leave_stream()
            self._stream = self._opened(self._session.begin())
        elif self._stream is not None:
            self._stream.reset()

    def _leave_stream(self) -> None:
        """Drop the stream, but not the items on which it failed."""
        if self._stream is not None:
            self._failures_before, self._errors_before = self.quarantined, self.errors
            self._stream = None

    def _end_iteration(self) -> None:
        """Stop reading, and end the epoch of the service."""
        if self._rest is not None:
            self._has_read |= self._rest.has_read
            self._rest.release()
            self._rest = None
        if self._stream is not None:
            self._stream.close_later()  # a signal handler may shut down the loader while it reads
        self._session.end_iteration()

    def write(self, path: str | os.PathLike[str]) -> JsonlDataset:
        """Write the next epoch, or the rest of one that was loaded, to a jsonl file.

        The file is replaced once all is written. A rank of several writes its own items.

        Args:
            path: The file.

        Raises:
            InputError: An item is not a dict, or JSON cannot hold it.
            DataPipelineError: The loader is shut down.
        """
        return write_records(Path(path), self, "loader")

    # ------------------------------------------------------------ positions

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last item as a JSON object.

        After the end of an epoch it is the start of the next one. Ranks that have read the same
        number of items have the same state.

        Raises:
            DataPipelineError: An error has ended the loader.
            StreamStateError: A stage holds items that JSON cannot hold.
        """
        check_unbroken("loader", self._failure)
        goes_on = self._rest is not None or self._is_shut_down
        stream = self._stream if goes_on else self._begun()
        if stream is None:
            raise DataPipelineError(_SHUT_DOWN)
        state = {
            "version": VERSION,
            "seed": self._seed,
            "epoch": self._epoch,
            "stream": stream.state_dict(),
        }
        ranks = self._state_ranks(stream)
        if ranks is not None:
            state["ranks"] = ranks
        service = self._session.checkpoint()
        return {**state, "service": service} if service else state

    def _state_ranks(self, stream: PositionedStream) -> dict[str, Any] | None:
        """Return which ranks can load the present state; see `StateRanks`."""
        has_read = self._has_read or (self._rest is not None and self._rest.has_read)
        if self._position == "loaded" and not has_read:
            return self._loaded_ranks  # type: ignore[no-any-return]
        return StateRanks.of(stream).state(starts_epoch=not has_read)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to a position; the next iterator reads from there. A live iterator is ended.

        Raises:
            StreamStateError: The state is none of a loader, or belongs to another stream.
            StreamArgumentError: It holds the state of a service, but this service has none.
            DataPipelineError: The loader is shut down.
        """
        self._check_open()
        seed, epoch, position, service = _content(state_dict)
        ranks = state_dict.get("ranks")
        self._end_iteration()
        stream = self._at_start(self._session.begin(service), seed)
        if self._stream is not None:
            stream.take_failures(self._stream)
        try:
            stream.load_state_dict(position)
        except StreamStateError as error:
            stream = self._reset_at(SeedGenerator(seed, "epoch", epoch), position, error)
        _check_ranks(stream, ranks)
        self._has_read, self._loaded_ranks = False, ranks
        self._seed, self._epoch, self._next_seed = seed, epoch, None
        self._stream, self._position = stream, "loaded"

    def _reset_at(
        self, generator: SeedGenerator, position: Any, failure: StreamStateError
    ) -> PositionedStream:
        """Return the stream that the service makes for an epoch, at a position."""
        reset = self._session.begin_iteration(generator)
        try:
            if reset is None:
                raise failure
            fresh = self._session.stream_of_epoch(reset)
            stream = self._at_start(fresh, generator.root)
            stream.load_state_dict(position)
            return stream
        finally:
            self._session.end_iteration()

    # ------------------------------------------------------------ failed items

    @property
    def quarantined(self) -> list[dict[str, Any]]:
        """The failed items in quarantine, up to 1,000, also of worker processes and other epochs.

        Those behind a position that was loaded are not among them.
        """
        failures = [] if self._stream is None else self._stream.quarantined
        return [*self._failures_before, *failures][:MAX_KEPT]

    @property
    def errors(self) -> int:
        """The number of failed items up to the position, also of seeds that were read before."""
        return self._errors_before + (0 if self._stream is None else self._stream.errors)

    # ------------------------------------------------------------ ends

    def shutdown(self) -> None:
        """End the epoch and the service. Further calls have no effect."""
        if self._is_shut_down:
            return
        self._is_shut_down = True
        try:
            self._end_iteration()
        finally:
            self._session.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def __del__(self) -> None:
        if os.getpid() == self._process:  # a fork does not end the service of its parent
            self.shutdown()

    @property
    def reading_service(self) -> ReadingServiceInterface:
        """The service that the loader uses: a copy of the given one."""
        return self._session.service

    @property
    def datapipe(self) -> Operations:
        """The stream that is read; the given one if reading has not begun."""
        return self._options if self._stream is None else self._stream

    def is_live(self, rest: RestOfEpoch) -> bool:
        """Return whether no newer iterator, state or shutdown has ended what an iterator reads."""
        return rest is self._rest

    def finish_epoch(self) -> None:
        """End an epoch that was read to its end. Its iterator calls this."""
        try:
            self._end_iteration()
            self._go_to_next_epoch()
        except BaseException as error:
            self.fail(error)
            raise

    def fail(self, error: BaseException) -> None:
        """Shut down after an error. Errors of the service in doing so become notes of it."""
        self._failure = error
        try:
            self.shutdown()
        except Exception as another:  # noqa: BLE001 - of a service of the user
            error.add_note(f"shutting down the loader failed, too: {another!r}")

    def _check_open(self) -> None:
        """Raise `DataPipelineError` if the loader is shut down."""
        check_unbroken("loader", self._failure)
        if self._is_shut_down:
            raise DataPipelineError(_SHUT_DOWN)


def _positioned(source: object) -> PositionedStream:
    """Return a stream with its options."""
    if isinstance(source, PositionedStream):
        return source
    if isinstance(source, DataPipelineBuilder):
        return source.and_return()
    reason = f"datapipe is a {type(source).__name__}; it must be a stream"
    raise StreamArgumentError("DataLoader2", reason)


def _check_ranks(stream: PositionedStream, saved: Any) -> None:
    """Check that this rank can load a state."""
    ranks = StateRanks.of(stream)
    if saved is not None:
        ranks.check(saved, splits_element=stream.splits_element)
    elif ranks.fixed:
        _LOGGER.warning(
            "the loaded state does not say how many ranks took it; if there were not %d, items "
            "are lost and doubled, because of %s after the sharding mark",
            ranks.place.world_size,
            ", ".join(ranks.fixed),
        )


def _content(state: Any) -> tuple[int, int, Any, str]:
    """Return the seed, the epoch, the position and the service's state of a loader's state."""
    if not isinstance(state, Mapping) or not {"seed", "epoch", "stream"} <= set(state):
        msg = "this is not the state of a loader; pass the result of its state_dict()"
        raise StreamStateError(msg)
    if state.get("version") != VERSION:
        version = state.get("version")
        msg = f"the loader's state has version {version!r}; this package reads version {VERSION}"
        raise StreamStateError(msg)
    seed, epoch = state["seed"], state["epoch"]
    if not is_seed(seed) or type(epoch) is not int or epoch < 0:
        msg = f"the loader's state is damaged: its seed is {seed!r}, its epoch {epoch!r}"
        raise StreamStateError(msg)
    return seed, epoch, state["stream"], str(state.get("service", ""))
