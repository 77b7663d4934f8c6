"""The ``input_key``/``output_key`` convention of operators that work on fields.

An input key is the name of a column, or a selector: what holds a ``.``, ``[`` or ``,`` is one, such
as ``meta.lang,texts[*].body``. A column that is missing is an empty one; a selected element that
is missing is an error, which names its path.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from dagster_dataops.errors import DefinitionError, MissingColumnError
from dagster_dataops.records import Record
from dagster_dataops.selectors.selector import Selector, is_selector

Keys: TypeAlias = str | list[str]


def key_pairs(input_key: Keys, output_key: Keys | None) -> list[tuple[str, str]]:
    """Return (read, written) pairs of keys.

    Args:
        input_key: One key, or several.
        output_key: As many, in the same order; ``None`` writes where it was read.

    Raises:
        DefinitionError: They are not as many.
    """
    read = [input_key] if isinstance(input_key, str) else list(input_key)
    if output_key is None:
        return [(key, key) for key in read]
    written = [output_key] if isinstance(output_key, str) else list(output_key)
    if len(read) != len(written):
        msg = f"input_key names {len(read)} keys ({read}), output_key {len(written)} ({written})"
        raise DefinitionError(msg)
    return list(zip(read, written, strict=True))


class Column:
    """What an input key names in a record.

    Args:
        key: The name of a column, or a selector.

    Raises:
        SelectorSyntaxError: The selector is malformed.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._selector = Selector(key) if is_selector(key) else None
        self.text: Callable[[Record], str] = self._selected if self._selector else self._plain
        """Return it as one text; the texts of several elements are joined by line ends."""

    @property
    def single(self) -> bool:
        """Whether it is exactly one element."""
        return self._selector is None or self._selector.single

    def mapped(self, fn: Callable[[Any], Any], record: Record) -> Record:
        """Return ``record`` with ``fn`` applied to it, element by element; missing is ``None``."""
        if self._selector is None:
            return {**record, self._key: fn(record.get(self._key))}
        changed: Record = self._selector.map(fn, record)
        return changed

    def present(self, record: Record) -> list[Any]:
        """Return its elements, or none at all if one of them is missing."""
        if self._selector is None:
            return [record[self._key]] if self._key in record else []
        try:
            return self._selector.values(record)
        except MissingColumnError:
            return []

    def _plain(self, record: Record) -> str:
        return str(record.get(self._key) or "")

    def _selected(self, record: Record) -> str:
        assert self._selector is not None  # noqa: S101 - it is what makes this the method
        return "\n".join(str(value or "") for value in self._selector.values(record))
