"""`SequentialReadingService`: several services, each upon the stream of the one before."""

import json
from contextlib import ExitStack

from dagster_dataops.errors import StreamStateError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.operations import Operations
from dagster_dataops.training.loading.reading_service import (
    CheckpointableReadingServiceInterface,
    IterResetFn,
    ReadingServiceInterface,
)
from dagster_dataops.training.loading.seed_generator import SeedGenerator
from dagster_dataops.training.loading.service_session import (
    begin,
    begin_iteration,
    check_service,
    checkpoint_of,
    decoded,
    encoded,
)


class SequentialReadingService(CheckpointableReadingServiceInterface):
    """Services that begin in the given order and end in reverse.

    If one cannot begin, those before it are finalized. `DistributedReadingService` and
    `MultiProcessingReadingService` can be given in any order.

    Args:
        services: The services.

    Raises:
        StreamArgumentError: One of them is no reading service.
    """

    def __init__(self, *services: ReadingServiceInterface) -> None:
        for number, service in enumerate(services):
            check_service(f"SequentialReadingService, argument {number + 1}", service)
        self._services = services
        self._running, self._iteration = ExitStack(), ExitStack()

    @override
    def initialize(self, datapipe: Operations) -> Operations:
        return self._begun(datapipe, [b""] * len(self._services))

    def _begun(self, datapipe: Operations, states: list[bytes]) -> Operations:
        """Begin all services, from their states if there are any."""
        with ExitStack() as begun:
            for service, state in zip(self._services, states, strict=True):
                datapipe = begin(service, datapipe, state)
                begun.callback(service.finalize)
            self._running = begun.pop_all()
        return datapipe

    @override
    def initialize_iteration(
        self, seed_generator: SeedGenerator, iter_reset_fn: IterResetFn | None = None
    ) -> IterResetFn | None:
        with ExitStack() as begun:
            for service in self._services:
                reset = begin_iteration(service, seed_generator, iter_reset_fn)
                begun.callback(service.finalize_iteration)
                iter_reset_fn = reset or iter_reset_fn
            self._iteration = begun.pop_all()
        return iter_reset_fn

    @override
    def finalize_iteration(self) -> None:
        self._iteration.close()

    @override
    def finalize(self) -> None:
        self._running.close()

    @override
    def checkpoint(self) -> bytes:
        """Return the states of the services that have one; empty if none has."""
        checkpoints = [checkpoint_of(service) for service in self._services]
        return (
            json.dumps([encoded(checkpoint) for checkpoint in checkpoints]).encode()
            if any(checkpoints)
            else b""
        )

    @override
    def restore(self, datapipe: Operations, serialized_state: bytes) -> Operations:
        states = json.loads(serialized_state)
        if len(states) != len(self._services):
            reason = (
                f"it holds the states of {len(states)} reading services, but here are "
                f"{len(self._services)}; give the services with which it was taken"
            )
            raise StreamStateError(reason)
        return self._begun(datapipe, [decoded(state) for state in states])
