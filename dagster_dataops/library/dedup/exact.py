"""``dedup.Exact``: keep the first record of each value."""

import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import xxhash

from dagster_dataops.data import data_register
from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.selectors.selector import is_selector
from dagster_dataops.library.field_keys import FieldKey, Keys, key_list
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.library.sorting.first_seen import FirstOfEquals, first_of_equals
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record, encode

_NO_LETTERS: Final = re.compile(rf"[\s\d{re.escape(string.punctuation)}]+")

dedup: Any = data_register.new_group("dedup")


class Exact(dedup):
    """Keep the first record of each value of ``input_key`` (one key or several).

    A key may be a selector, such as ``meta.id,texts[*].body``. Records without a key are equal in
    that key. With ``ignore_case``, texts are equal if they differ only in case or white space; with
    ``normalize="datajuicer"``, if only in case, white space, digits or ASCII punctuation.
    128-bit digests are compared: among a billion records, the probability that any two different
    values agree is about 1 in 10^21. The selection uses up to ``max_memory_mb`` MB and one bit per
    record, then 24 bytes per record on disk.

    Args:
        input_key: Key of the value: a column or a selector, or several.
        ignore_case: Whether case and white space are ignored.
        normalize: ``none``, or ``datajuicer`` to ignore case, white space, digits and ASCII
            punctuation.
        max_memory_mb: Memory in MB before files are used.
    """

    def __init__(
        self,
        input_key: Keys = "text",
        *,
        ignore_case: bool = False,
        normalize: str = "none",
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        keys = key_list("input_key", input_key)
        self._keys = [key for key in keys if not is_selector(key)]
        self._columns = {key: FieldKey(key) for key in keys if is_selector(key)}
        self._normalized = normalization(normalize, ignore_case=ignore_case)
        plain = keys == self._keys[:1] and self._normalized is None
        self._text_key = keys[0] if plain else ""
        self._max_bytes = max_memory_mb << 20

    def sketch(self, record: Record) -> str:
        value = record.get(self._text_key) if self._text_key else None
        if type(value) is str:  # the usual case, without JSON
            return xxhash.xxh3_128_hexdigest(value.encode("utf-8", "surrogatepass"), 1)
        values: Any = {key: record[key] for key in self._keys if key in record}
        for key, column in self._columns.items():
            for number, selected in enumerate(column.present(record)):
                values[f"{key}:{number}"] = selected
        if self._normalized is not None:
            for key, value in values.items():
                if isinstance(value, str):
                    values[key] = self._normalized(value)
        return xxhash.xxh3_128_hexdigest(encode(values))

    def keep(self, sketches: Iterator[str], scratch: Path) -> Iterator[bool]:
        return first_of_equals(map(bytes.fromhex, sketches), scratch, self._max_bytes)

    def __dataops_partitioning__(self) -> FirstOfEquals:
        return FirstOfEquals(self._max_bytes)


def normalization(normalize: str, *, ignore_case: bool) -> Callable[[str], str] | None:
    """Return the function that makes equal texts the same; ``None`` for no function."""
    check_choice("normalize", normalize, ("none", "datajuicer"))
    if normalize == "none":
        return _without_case if ignore_case else None
    if ignore_case:
        msg = "normalize='datajuicer' ignores case; leave ignore_case out"
        raise DefinitionError(msg)
    return _letters


def _without_case(text: str) -> str:
    return " ".join(text.split()).casefold()


def _letters(text: str) -> str:
    return _NO_LETTERS.sub("", text.lower())
