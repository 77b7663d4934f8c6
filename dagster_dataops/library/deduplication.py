"""Group ``dedup``: operators that remove repeated records and keep the first of each.

They process the records in parallel, with a checkpoint, and then decide in input order. Memory is
limited; more data goes to files in the node's folder.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import xxhash

from dagster_dataops.data import data_register
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.algorithms.first_seen import first_of_equals
from dagster_dataops.library.field_keys import FieldKey, Keys, key_pairs
from dagster_dataops.records import Record, encode
from dagster_dataops.selectors.selector import is_selector

dedup: Any = data_register.new_group("dedup")


class Exact(dedup):
    """Keep the first record of each value of ``input_key`` (one key or several).

    A key may be a selector, such as ``meta.id,texts[*].body``. Records without a key are equal in
    that key. With ``ignore_case``, texts are equal if they differ only in case or white space.
    128-bit digests are compared: among a billion records, the probability that any two different
    values agree is about 1 in 10^21. The selection uses up to ``max_memory_mb`` MB and one bit per
    record, then 24 bytes per record on disk.
    """

    def __init__(
        self,
        input_key: Keys = "text",
        *,
        ignore_case: bool = False,
        max_memory_mb: int = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        keys = [read for read, _ in key_pairs(input_key, None)]
        self._keys = [key for key in keys if not is_selector(key)]
        self._columns = {key: FieldKey(key) for key in keys if is_selector(key)}
        self._ignore_case = ignore_case
        self._text_key = keys[0] if keys == self._keys[:1] and not ignore_case else ""
        self._max_bytes = memory_bytes(max_memory_mb)

    def sketch(self, record: Record) -> str:
        value = record.get(self._text_key) if self._text_key else None
        if type(value) is str:  # the usual case, without JSON
            return xxhash.xxh3_128_hexdigest(value.encode(), 1)
        values: Any = {key: record[key] for key in self._keys if key in record}
        for key, column in self._columns.items():
            for number, selected in enumerate(column.present(record)):
                values[f"{key}:{number}"] = selected
        if self._ignore_case:
            for key, value in values.items():
                if isinstance(value, str):
                    values[key] = " ".join(value.split()).casefold()
        return xxhash.xxh3_128_hexdigest(encode(values))

    def keep(self, sketches: Iterator[str], scratch: Path) -> Iterator[bool]:
        return first_of_equals(map(bytes.fromhex, sketches), scratch, self._max_bytes)


def memory_bytes(max_memory_mb: int) -> int:
    """Return the option ``max_memory_mb`` in bytes.

    Raises:
        DefinitionError: It is less than 1.
    """
    if max_memory_mb < 1:
        msg = f"max_memory_mb must be at least 1, got {max_memory_mb}"
        raise DefinitionError(msg)
    return max_memory_mb << 20
