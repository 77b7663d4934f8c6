"""`DataLoader2Iterator`: one epoch of a loader."""

from collections.abc import Iterator
from typing import Any, Final, Protocol, Self

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.streams.core.arguments import check_count

_OF_THE_LOADER: Final = frozenset({"state_dict", "load_state_dict", "reset", "close"})


class LoaderSettings(Protocol):
    """The settings of a loader that its iterator needs."""

    @property
    def datapipe(self) -> object:
        """The stream that is read."""
        ...

    def is_live(self, rest: "RestOfEpoch") -> bool:
        """Return whether no newer iterator, state or shutdown has ended what an iterator reads."""
        ...

    def finish_epoch(self) -> None:
        """End an epoch that was read to its end."""
        ...

    def fail(self, error: BaseException) -> None:
        """Shut down after an error."""
        ...


class RestOfEpoch:
    """The items of an epoch that were not read yet.

    A loader holds these, and not its iterator, which holds the loader: so a loader ends as soon as
    nothing else holds it.
    """

    def __init__(self, items: Iterator[Any]) -> None:
        self._items = items
        self.has_read = False

    def read(self) -> Any:
        """Return the next item; raise `StopIteration` if there is none."""
        item = next(self._items)
        self.has_read = True
        return item

    def successor(self) -> "RestOfEpoch":
        """Return the same items for another iterator, and end these."""
        other = RestOfEpoch(self._items)
        self.release()
        return other

    def release(self) -> None:
        """Release the items, so that their readers can end."""
        self._items = iter(())


class DataLoader2Iterator:
    """The items of one epoch, from the position of the loader on.

    Attributes that it does not have are those of the stream. Its position is the loader's, so
    methods of the stream that take or change it are not among them.
    """

    def __init__(self, loader: LoaderSettings, rest: RestOfEpoch) -> None:
        self._loader = loader
        self._rest = rest
        self._limit: int | None = None
        self._count = 0  # of items since the limit was set, or since resume()
        self._is_paused = self._has_ended = False

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the stream.

        Raises:
            AttributeError: It has none, or it is about the position.
        """
        if name.startswith("__") or "_loader" not in vars(self):
            raise AttributeError(name)
        if name in _OF_THE_LOADER:
            msg = f"an iterator of a loader has no {name}: its position is that of the loader"
            raise AttributeError(msg)
        return getattr(self._loader.datapipe, name)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        """Return the next item.

        Raises:
            StopIteration: The epoch has ended, the limit is reached, or the iterator is paused.
            DataPipelineError: A newer iterator, or the loader, has ended this one.
        """
        if self._has_ended or self._is_paused or self._count == self._limit:
            raise StopIteration
        if not self._loader.is_live(self._rest):
            msg = (
                "this iterator is invalidated: a newer iterator, load_state_dict() or shutdown() "
                "of its loader has ended it; read from a new one, iter(loader)"
            )
            raise DataPipelineError(msg)
        try:
            item = self._rest.read()
        except StopIteration:
            self._has_ended = True
            self._loader.finish_epoch()
            raise
        except BaseException as error:
            self._loader.fail(error)
            raise
        self._count += 1
        return item

    @property
    def has_ended(self) -> bool:
        """Whether the epoch has ended."""
        return self._has_ended

    def limit(self, num_batches: int | None) -> None:
        """Stop after ``num_batches`` more items; ``None`` for no limit.

        The epoch continues with `resume`, which allows as many items again.
        """
        if num_batches is not None:
            check_count("limit", "num_batches", num_batches, 0)
        self._limit, self._count = num_batches, 0

    def pause(self) -> None:
        """Yield nothing until `resume`."""
        self._is_paused = True

    def resume(self) -> None:
        """Continue after `pause`, or after the limit was reached."""
        self._is_paused, self._count = False, 0
