"""`WorkerConfig`: the rank and the worker processes of a dataset, in Energon's names."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

from dagster_dataops.errors import StreamArgumentError
from dagster_dataops.foundation.override import override
from dagster_dataops.records import SOURCES
from dagster_dataops.streams.core.arguments import check_count, is_seed
from dagster_dataops.streams.core.item_failures import OnError, OnFailure
from dagster_dataops.streams.core.ranks import checked_rank, torch_group

_LOGGER: Final = logging.getLogger(__name__)
_NAME: Final = "WorkerConfig"

ErrorHandler: TypeAlias = Callable[[Exception, Any, Any], None]


def log_exception(error: Exception, sample: Any, sources: Any = None) -> None:
    """Log an error: as the handler of a `WorkerConfig`, failed samples are logged and skipped."""
    key = sample.get("__key__") if isinstance(sample, dict) else None
    _LOGGER.error("sample %s failed: %r; its sources: %s", key, error, sources)


def reraise_exception(error: Exception, sample: Any, sources: Any = None) -> NoReturn:  # noqa: ARG001
    """Raise an error again: as the handler of a `WorkerConfig`, the first failed sample ends all.

    Raises:
        Exception: The error.
    """
    raise error


def log_without_effect(place: str, options: Iterable[str]) -> None:
    """Log that options of Energon were given which have no effect in this package.

    Args:
        place: The function or class that was called.
        options: Their names.
    """
    if names := ", ".join(sorted(options)):
        _LOGGER.warning("%s: these options of Energon have no effect: %s", place, names)


def _sources(sample: object) -> Any:
    return sample.get(SOURCES) if isinstance(sample, dict) else None


_POLICIES: Final[dict[ErrorHandler, OnError]] = {log_exception: "skip", reraise_exception: "raise"}


@dataclass(kw_only=True, eq=False)
class WorkerConfig:
    """The rank of a dataset, and the number of its worker processes.

    A dataset of ``rank`` r of ``world_size`` W reads the samples r, r + W and so on of the order
    that all ranks share. Unlike in Energon, neither the number of worker processes nor that of the
    ranks changes this order. Any number of both can load the states of all ranks together (see
    ``save_state_global`` of the loader, and ``merged_states``), except where each rank has packs,
    groups or dropped last batches of its own.

    Attributes:
        rank: The number of this process among those that train in parallel, counted from 0.
        world_size: The number of these processes.
        num_workers: The number of worker processes of each rank; 0 reads in the training process.
        data_parallel_group: The group of ``torch.distributed`` in which ``rank`` counts.
        seed_offset: The seed of all draws.
        worker_debug_path: Energon's; without effect, as a warning says.
        worker_log_level: Energon's; without effect, as a warning says.
        global_error_handler: `log_exception` to skip failed samples, `reraise_exception` to end
            with the first, or a function of the error, the sample and its sources, which is called
            in the training process: the sample is skipped, unless it raises an error.
        restore_error_handler: Energon's; without effect, as a warning says: an error while a sample
            is restored is always raised.

    Raises:
        StreamDefinitionError: A number is invalid.
        StreamArgumentError: The error handler is no function.
    """

    rank: int
    world_size: int
    num_workers: int
    data_parallel_group: Any = None
    seed_offset: int = 0
    worker_debug_path: str | None = None
    worker_log_level: int = 0
    global_error_handler: ErrorHandler = log_exception
    restore_error_handler: ErrorHandler = reraise_exception

    def __post_init__(self) -> None:
        """Check the values."""
        checked_rank(_NAME, self.rank, self.world_size)
        check_count(_NAME, "num_workers", self.num_workers, 0)
        if not is_seed(self.seed_offset):
            reason = f"seed_offset is {self.seed_offset!r}; it must be an integer of at least 0"
            raise StreamArgumentError(_NAME, reason)
        options = {
            "worker_debug_path": self.worker_debug_path is not None,
            "worker_log_level": self.worker_log_level != 0,
            "restore_error_handler": self.restore_error_handler is not reraise_exception,
        }
        log_without_effect(_NAME, [name for name, is_given in options.items() if is_given])
        handler: object = self.global_error_handler
        if not callable(handler):
            reason = f"global_error_handler is {handler!r}; give a function"
            raise StreamArgumentError(_NAME, reason)

    @property
    def on_error(self) -> OnError | OnFailure:
        """The handling of failed samples, as `get_savable_loader` takes it."""
        handler = self.global_error_handler
        for known, policy in _POLICIES.items():
            if handler is known:  # other handlers may have no hash
                return policy
        return lambda error, sample: handler(error, sample, _sources(sample))

    @staticmethod
    def default_worker_config(
        num_workers: int = 4, data_parallel_group: Any = None
    ) -> "WorkerConfig":
        """Return the configuration of this process: its rank by ``torch.distributed``, or 0 of 1.

        Args:
            num_workers: The number of worker processes.
            data_parallel_group: The group in which the rank counts; ``None`` for all processes.
        """
        group, parallel = torch_group(), data_parallel_group
        return WorkerConfig(
            rank=0 if group is None else group.get_rank(parallel),
            world_size=1 if group is None else group.get_world_size(parallel),
            num_workers=num_workers,
            data_parallel_group=data_parallel_group,
        )

    def config(self) -> dict[str, Any]:
        """Return rank, world size, number of workers, and the size of the group if there is one."""
        group = self.data_parallel_group
        return {**self._place(), "data_parallel_group": None if group is None else group.size()}

    def gathered(self, rank: int, value: Any) -> list[Any] | None:
        """Return the values of all ranks on one of them, ``None`` on the others.

        All ranks must call it at the same time.

        Args:
            rank: The rank that gets them.
            value: The value of this rank.

        Raises:
            StreamArgumentError: There are other ranks, but no group of ``torch.distributed``.
        """
        if self.world_size == 1:
            return [value] if rank == 0 else None
        torch, group = torch_group(), self.data_parallel_group
        if torch is None:
            reason = "this process is in no group of torch.distributed; save the state of each rank"
            raise StreamArgumentError("save_state_global", reason)
        values = [None] * self.world_size
        torch.all_gather_object(values, value, group=group)
        return values if rank == self.rank else None

    def sent_from(self, rank: int, value: Any) -> Any:
        """Return the value of one rank on all ranks, which must call it at the same time.

        Without ``torch.distributed``, each rank has its own.

        Args:
            rank: The rank whose value is sent.
            value: The value of this rank.
        """
        torch, group, values = torch_group(), self.data_parallel_group, [value]
        if torch is not None and self.world_size > 1:
            source = rank if group is None else torch.get_global_rank(group, rank)
            torch.broadcast_object_list(values, src=source, group=group)
        return values[0]

    def is_same(self, other: "WorkerConfig") -> bool:
        """Return whether seed and error handler are equal, too."""
        more = other.seed_offset, other.global_error_handler
        return self == other and more == (self.seed_offset, self.global_error_handler)

    def _place(self) -> dict[str, int]:
        names = ("rank", "world_size", "num_workers")
        return {name: getattr(self, name) for name in names}

    @override
    def __eq__(self, other: object) -> bool:
        """Return whether rank, world size and number of workers are equal."""
        return isinstance(other, WorkerConfig) and self._place() == other._place()

    @override
    def __hash__(self) -> int:
        return hash(tuple(self._place().values()))
