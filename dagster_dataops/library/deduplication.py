"""Group ``dedup``: dataset operators that remove repeated records."""

from collections.abc import Iterable, Iterator
from typing import Any

import xxhash

from dagster_dataops.data import data_register
from dagster_dataops.library.keys import Keys, key_pairs
from dagster_dataops.records import Record, encode

dedup: Any = data_register.new_group("dedup")


class Exact(dedup):
    """Keep the first of all records that agree in ``input_key`` (one key or several).

    Records that lack a key agree in lacking it. With ``ignore_case`` texts agree that differ in
    case or white space only. Memory: a 16-byte digest a distinct record, about 100 bytes in all.
    """

    def __init__(
        self, input_key: Keys = "text", *, ignore_case: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._keys = [read for read, _ in key_pairs(input_key, None)]
        self._ignore_case = ignore_case

    def forward_batch_input(self, records: Iterable[Record]) -> Iterator[Record]:
        seen: set[bytes] = set()
        for record in records:
            digest = self._digest(record)
            if digest not in seen:
                seen.add(digest)
                yield record

    def _digest(self, record: Record) -> bytes:
        values: Any = {key: record[key] for key in self._keys if key in record}
        if self._ignore_case:
            for key, value in values.items():
                if isinstance(value, str):
                    values[key] = " ".join(value.split()).casefold()
        return xxhash.xxh3_128_digest(encode(values))
