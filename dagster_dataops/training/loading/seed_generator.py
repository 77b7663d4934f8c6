"""`SeedGenerator`: all seeds of a loader, derived from one."""

import os
from copy import copy
from typing import Final

from dagster_dataops.streams.core.arguments import check_count, check_seed
from dagster_dataops.streams.core.seeds import derive_seed

_BYTES: Final = 8


class SeedGenerator:
    """Seeds of two kinds: shared ones, equal in all ranks and workers, and own ones.

    A seed with names depends on the names and on nothing else: not on how many seeds were
    generated before. A seed without names is numbered.

    Args:
        seed: The root seed; a random one if ``None``.
        names: Names below the root seed, such as the number of the epoch.

    Attributes:
        has_restarted: Whether `seed` was called after it was made.
    """

    _names: tuple[str | int, ...]
    has_restarted: bool

    def __init__(self, seed: int | None = None, *names: str | int) -> None:
        self._place: tuple[int, ...] = ()
        self.seed(seed)
        self._names, self.has_restarted = names, False

    @property
    def root(self) -> int:
        """The root seed."""
        return self._root

    def seed(self, seed: int | None = None) -> None:
        """Set the root seed, and restart: the same seeds follow in every epoch.

        A service that calls this at the start of an epoch makes it the first epoch of that seed.

        Raises:
            StreamArgumentError: ``seed`` is no integer from 0 to 2^64 - 1.
        """
        check_seed("SeedGenerator", seed)
        self.replace_root(int.from_bytes(os.urandom(_BYTES)) if seed is None else seed)
        self._names, self.has_restarted = (), True

    def replace_root(self, root: int) -> None:
        """Take the root seed of another rank. The names below it, such as the epoch, stay."""
        self._root = root
        self._shared_count = self._own_count = 0

    def generate_shared_seed(self, *names: str | int) -> int:
        """Return a 64-bit seed that is equal in all ranks and workers; without names the next."""
        if not names:
            self._shared_count += 1
            names = (self._shared_count,)
        return derive_seed(self._root, "shared", *self._names, *names)

    def generate_seed(self, *names: str | int) -> int:
        """Return a 64-bit seed of this rank or worker; without names the next."""
        if not names:
            self._own_count += 1
            names = (self._own_count,)
        place = "/".join(map(str, self._place))
        return derive_seed(self._root, "own", place, *self._names, *names)

    def spawn(self, worker_id: int, inplace: bool = False) -> "SeedGenerator":  # noqa: FBT001, FBT002
        """Return the generator of a rank or worker: the same shared seeds, other own ones.

        Args:
            worker_id: The number of the rank or worker, from 0.
            inplace: Whether to change this generator, and return it.

        Raises:
            StreamArgumentError: The number is negative.
        """
        check_count("SeedGenerator", "worker_id", worker_id, 0)
        spawned = self if inplace else copy(self)
        vars(spawned).update(_place=(*self._place, worker_id), _own_count=0)
        return spawned
