"""`GroupBatches`: lists of samples of one group, such as images of one shape."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Final, TypeAlias

from dagster_dataops.errors import StreamStateError
from dagster_dataops.foundation.override import override
from dagster_dataops.records import RESTORE_KEY
from dagster_dataops.streams.core.stage import State, UnaryStage
from dagster_dataops.streams.core.state_values import from_json, to_json

Criterion: TypeAlias = Callable[[Any], tuple[Hashable, int | None]]

_RESTORING: Final = "dagster_dataops.training.cooking.restoring"  # it imports this module


@dataclass(eq=False)
class GroupBatches(UnaryStage):
    """Collect the samples of each group in a list; a list of full size is yielded.

    The state has the restore keys of the samples that wait; they are made again of these.

    Attributes:
        criterion: Returns the group of a sample, and the size of the lists of this group.
        size: The size of all lists; ``None`` if ``criterion`` returns it.
        drop_last: Whether to drop the lists that are not full at the end.
    """

    name: ClassVar[str] = "group_batches"
    saved: ClassVar[tuple[str, ...]] = ("failed", "held")
    criterion: Criterion
    size: int | None
    drop_last: bool

    @override
    def reset(self) -> None:
        self._groups: dict[Hashable, list[Any]] = {}

    @property
    def held(self) -> State:
        """The restore keys of the waiting samples of each group.

        Raises:
            StreamStateError: A sample has no restore key.
        """
        return [
            [to_json(group), [_key_of(waiting_sample) for waiting_sample in waiting]]
            for group, waiting in self._groups.items()
        ]

    @held.setter
    def held(self, held: State) -> None:
        restored = import_module(_RESTORING).restored
        self._groups = {
            from_json(group): [restored(self.upstream, key) for key in keys] for group, keys in held
        }

    @override
    def items(self) -> Iterator[Any]:
        last = self.counter.before
        for sample in self.source.items():
            try:
                group, size = self._group(sample)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                last = self.counter.handle(sample, error, last)
                continue
            last = None
            waiting = self._groups.setdefault(group, [])
            waiting.append(sample)
            if len(waiting) >= size:
                del self._groups[group]
                yield waiting
        self.counter.end(last)
        while self._groups and not self.drop_last:
            yield self._groups.pop(next(iter(self._groups)))

    def _group(self, sample: Any) -> tuple[Hashable, int]:
        """Return the group of a sample, and the size of its lists."""
        group, limit = self.criterion(sample)
        size = self.size if limit is None else limit
        if size is None or None not in {self.size, limit} or size < 1:
            msg = (
                f"batch_group_criterion returned the size {limit!r} for the group {group!r}, with "
                f"batch_size={self.size!r}; give the size of a batch in one of the two, above 0"
            )
            raise ValueError(msg)
        return group, size


def _key_of(sample: Any) -> Any:
    key = sample.get(RESTORE_KEY) if isinstance(sample, dict) else None
    if not key:
        msg = (
            "a sample that waits for its batch has no __restore_key__, by which the state could "
            "name it; keep the keys of basic_sample_keys, or use derive_from"
        )
        raise StreamStateError(msg)
    return key
