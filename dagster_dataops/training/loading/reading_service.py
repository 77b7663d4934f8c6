"""Interfaces of reading services and their order of calls; the service without effect."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.operations import Operations
from dagster_dataops.training.loading.seed_generator import SeedGenerator

IterResetFn: TypeAlias = Callable[[Operations], Operations]


class ReadingServiceInterface(ABC):
    """A service that adapts a stream for one way of reading it.

    A loader reads with a copy of the service. What the service holds is copied by pickle. So it
    takes only what can be pickled in ``__init__``, and opens connections, pools and locks in
    `initialize`. Its code is not copied: methods use the globals of their module.

    The loader calls, in this order: `initialize` once; for each epoch `initialize_iteration` and
    `finalize_iteration`; `finalize` once. The finalizers are called after an error, too, and for an
    epoch that is not read to its end. None is called for a service that never began.
    """

    @abstractmethod
    def initialize(self, datapipe: Operations) -> Operations:
        """Begin the service and return the stream to read.

        Args:
            datapipe: The stream. It is immutable: return it, or one made of it, for example with
                `dagster_dataops.graphs`.
        """

    def initialize_iteration(
        self,
        seed_generator: SeedGenerator,  # noqa: ARG002 - for services
        iter_reset_fn: IterResetFn | None = None,  # noqa: ARG002 - for services
    ) -> IterResetFn | None:
        """Begin an epoch.

        Args:
            seed_generator: The source of all seeds of the epoch.
            iter_reset_fn: The function that the service before this one returned, if
                `SequentialReadingService` joins several.

        Returns:
            A function from the stream of `initialize` to the stream to read in this epoch, instead
            of ``iter_reset_fn``; ``None`` for none of its own.
        """
        return None

    def finalize_iteration(self) -> None:  # noqa: B027 - many services have nothing to do
        """End an epoch."""

    def finalize(self) -> None:  # noqa: B027 - many services have nothing to do
        """End the service."""


class InProcessReadingService(ReadingServiceInterface):
    """Read in the process of the loader, as loaders without a service do."""

    @override
    def initialize(self, datapipe: Operations) -> Operations:
        return datapipe


class CheckpointableReadingServiceInterface(ReadingServiceInterface):
    """A service with a state of its own. The position in the stream is not part of it."""

    @abstractmethod
    def checkpoint(self) -> bytes:
        """Return the state of the service. Called by `DataLoader2.state_dict`."""

    @abstractmethod
    def restore(self, datapipe: Operations, serialized_state: bytes) -> Operations:
        """Begin the service from a state, and return the stream to read.

        It is called instead of `initialize`.

        Args:
            datapipe: The stream, as `initialize` gets it.
            serialized_state: What `checkpoint` returned.
        """
