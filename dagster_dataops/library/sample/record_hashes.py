"""`RecordHash`: a number that a record gets by its content, the same everywhere."""

from typing import Any, Final

import xxhash

from dagster_dataops.library.canonical_form import canonical
from dagster_dataops.library.field_keys import FieldKey, Keys, key_list
from dagster_dataops.records import Record

_BITS: Final = 64


class RecordHash:
    """Computes a hash of some columns of a record, or of the whole record.

    Args:
        key: The columns; ``None`` for all. Their order in the record does not count.
        seed: Another seed gives other numbers.
    """

    def __init__(self, key: Keys | None, seed: int = 0) -> None:
        self._columns = [] if key is None else list(map(FieldKey, key_list("key", key)))
        self._seed = seed

    def of(self, record: Record) -> int:
        """Return the hash, less than 2^64."""
        chosen: Any = record
        if self._columns:
            chosen = [column.present(record) for column in self._columns]
        return xxhash.xxh3_64_intdigest(canonical(chosen), self._seed % (1 << _BITS))

    def share(self, record: Record) -> float:
        """Return the hash as a number from 0 to less than 1."""
        return (self.of(record) >> 11) / (1 << 53)  # the bits that a float holds
