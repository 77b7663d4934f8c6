"""Names of numbered part files, such as ``part-000``, that form one dataset."""

import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.core.seeds import seeded_random

_LOGGER: Final = logging.getLogger("dagster_dataops")
_MAX_LISTED: Final = 20


@dataclass(frozen=True, slots=True)
class PartNames:
    """The parts 0 to ``count - 1`` of a folder.

    Their names have a prefix, and at least ``suffix_length`` digits, padded with zeros; -1 for no
    padding.
    """

    folder: str
    count: int
    prefix: str
    suffix_length: int

    @property
    def names(self) -> list[str]:
        """The file names, in order."""
        return [f"{self.prefix}{str(at).zfill(self.suffix_length)}" for at in range(self.count)]

    def path(self, name: str) -> str:
        """Return the path of a part."""
        return os.path.join(self.folder, name)  # noqa: PTH118 - fast for thousands of names

    def check(self, *, warn: bool = False) -> None:
        """Raise an error if parts are missing in the folder.

        Args:
            warn: Whether to log a warning that lists parts which are not read.
        """
        try:
            present = {entry.name for entry in os.scandir(self.folder) if entry.is_file()}
        except OSError as error:
            raise StreamSourceError(self.folder, f"cannot be listed: {error.strerror}") from error
        names = self.names
        missing = [name for name in names if name not in present]
        others = self._others(present.difference(names))
        if missing:
            raise StreamSourceError(self.folder, self._missing(missing, others))
        if others and warn:
            text = "%s: %d parts are not read, since data_part_num is %d: %s"
            _LOGGER.warning(text, self.folder, len(others), self.count, _listed(others))

    def _others(self, names: set[str]) -> list[str]:
        pattern = re.compile(re.escape(self.prefix) + r"[0-9]+")
        return sorted(name for name in names if pattern.fullmatch(name))

    def _missing(self, missing: Sequence[str], others: Sequence[str]) -> str:
        """Describe which parts are missing, and suggest other arguments."""
        reason = f"{len(missing)} of {self.count} parts are missing: {', '.join(missing)}"
        if not others:
            return reason
        reason = f"{reason}. There are {_listed(others)}"
        lengths = {len(name) - len(self.prefix) for name in others}
        if len(lengths) == 1 and lengths != {len(missing[0]) - len(self.prefix)}:
            return f"{reason}: part_name_suffix_length={lengths.pop()} would read those"
        return reason

    def order(self, seed: int, epoch: int) -> list[str]:
        """Return the names in the order of an epoch: unshuffled in the first, then by the seed."""
        names = self.names
        if epoch:
            seeded_random(seed, "files", epoch).shuffle(names)
        return names


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {more:,} more" if more > 0 else "")
