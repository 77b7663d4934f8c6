"""`ServiceSession`: a copy of a reading service, and the order in which it is called."""

import base64
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from dagster_dataops.errors import StreamArgumentError, StreamStateError
from dagster_dataops.streams.identity.held_objects import HeldObjects
from dagster_dataops.streams.operations import Operations
from dagster_dataops.training.loading.reading_service import (
    CheckpointableReadingServiceInterface,
    IterResetFn,
    ReadingServiceInterface,
)
from dagster_dataops.training.loading.seed_generator import SeedGenerator


class ServiceSession:
    """A copy of a service. Each call that begins something is followed by the one that ends it.

    Args:
        service: The service.
        stream: The stream that it gets.
        held_objects: Told that the copy counts as the given service, whatever its calls change.

    Raises:
        StreamArgumentError: ``service`` is no reading service, or cannot be copied.
    """

    def __init__(self, service: object, stream: Operations, held_objects: HeldObjects) -> None:
        check_service("DataLoader2, reading_service", service)
        from dagster_dataops.training.loading.service_copies import (
            copied_service,  # with cloudpickle
        )

        self._copied = copied_service
        self._given_service = copied_service(service)
        self._stream, self._held_objects = stream, held_objects
        self._running, self._iterating = ExitStack(), ExitStack()
        self._copy()

    def _copy(self) -> None:
        self.service: ReadingServiceInterface = self._copied(self._given_service)
        for used, original in zip(
            _services_in(self.service), _services_in(self._given_service), strict=True
        ):
            self._held_objects.count_as(used, original)
        self._adapted: Operations | None = None

    def begin(self, state: str = "") -> Operations:
        """Return the stream of the service, which begins with the first call.

        Args:
            state: What `checkpoint` returned. A service that has begun is ended and restarted.
        """
        if state and self._adapted is not None:
            self.end()
            self._copy()
        if self._adapted is None:
            self._adapted = begin(self.service, self._stream, decoded(state))
            self._running.callback(self.service.finalize)
        return self._adapted

    def begin_iteration(self, generator: SeedGenerator) -> IterResetFn | None:
        """Begin an epoch, and return the function that resets the stream for it."""
        reset = begin_iteration(self.service, generator, None)
        self._iterating.callback(self.service.finalize_iteration)
        return reset

    def stream_of_epoch(self, reset: IterResetFn) -> Operations:
        """Return the stream that a function of the service makes of its stream."""
        return as_stream(self.service, "iter_reset_fn", reset(self.begin()))

    def end_iteration(self) -> None:
        """End an epoch, if one has begun."""
        self._iterating.close()

    def end(self) -> None:
        """End the epoch and the service, if they have begun."""
        try:
            self.end_iteration()
        finally:
            self._running.close()

    def checkpoint(self) -> str:
        """Return the state of the service as text; empty if it has none."""
        return encoded(checkpoint_of(self.service))


def _services_in(service: object) -> Iterator[ReadingServiceInterface]:
    """Yield a service and the services that it joins."""
    if isinstance(service, ReadingServiceInterface):
        yield service
        for value in getattr(service, "__dict__", {}).values():
            for inner in value if isinstance(value, (list, tuple)) else (value,):
                yield from _services_in(inner)


def check_service(place: str, service: object) -> None:
    """Raise `StreamArgumentError` unless ``service`` is a reading service."""
    if not isinstance(service, ReadingServiceInterface):
        kind = service.__name__ if isinstance(service, type) else type(service).__name__
        hint = "; give an instance" if isinstance(service, type) else ""
        reason = f"{kind} is no reading service: no object of ReadingServiceInterface{hint}"
        raise StreamArgumentError(place, reason)


def begin(service: ReadingServiceInterface, stream: Operations, state: bytes) -> Operations:
    """Begin a service and return its stream; ``state`` is empty, or that from which to begin.

    Raises:
        StreamArgumentError: There is a state, but the service has none; or the service returned no
            stream.
    """
    if not state:
        return as_stream(service, "initialize()", service.initialize(stream))
    if isinstance(service, CheckpointableReadingServiceInterface):
        return as_stream(service, "restore()", service.restore(stream, state))
    reason = (
        "the loaded state holds one of a reading service, but this one cannot restore it: it is no "
        "CheckpointableReadingServiceInterface; give the service with which it was taken"
    )
    raise StreamArgumentError(type(service).__name__, reason)


def begin_iteration(
    service: ReadingServiceInterface, generator: SeedGenerator, reset: IterResetFn | None
) -> IterResetFn | None:
    """Begin an epoch of a service, and return the function that it makes for its stream.

    Its method may take the generator alone, as TorchData allows.
    """
    if _takes_both(service.initialize_iteration):
        return service.initialize_iteration(generator, reset)
    return service.initialize_iteration(generator)


def _takes_both(method: Callable[..., object]) -> bool:
    """Return whether a method can be called with two values, by position."""
    try:
        inspect.signature(method).bind("seed_generator", "iter_reset_fn")
    except TypeError:
        return False
    return True


def as_stream(service: object, method: str, returned: object) -> Operations:
    """Return the result of a call of a service."""
    if not isinstance(returned, Operations):
        reason = f"{method} returned a {type(returned).__name__}; it must return a stream"
        raise StreamArgumentError(type(service).__name__, reason)
    return returned


def checkpoint_of(service: ReadingServiceInterface) -> bytes:
    """Return the state of a service; empty if it has none."""
    if not isinstance(service, CheckpointableReadingServiceInterface):
        return b""
    state: object = service.checkpoint()
    if not isinstance(state, bytes):
        reason = f"checkpoint() returned a {type(state).__name__}; it must return bytes"
        raise StreamArgumentError(type(service).__name__, reason)
    return state


def encoded(state: bytes) -> str:
    """Return the state of a service as text."""
    return base64.b64encode(state).decode()


def decoded(text: object) -> bytes:
    """Return the state that `encoded` made a text of."""
    try:
        return base64.b64decode(str(text), validate=True)
    except ValueError as error:
        msg = f"the state of its reading service is damaged: {error}"
        raise StreamStateError(msg) from error
