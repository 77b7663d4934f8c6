"""The ``input_key``/``output_key`` convention of operators that work on fields.

An input key is a column name, or a selector if it contains ``.``, ``[`` or ``,``, such as
``meta.lang,texts[*].body``. In a record that lacks it, a column counts as empty, and a selected
element is an error that names its path. The engine counts such records, and stops a run in which
all are so. A value that is neither a text nor ``null`` is an error of the record.
"""

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import DefinitionError, MissingColumnError, NoTextError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.foundation.selectors.selector import Selector, is_selector
from dagster_dataops.records import Record

Keys: TypeAlias = str | Sequence[str]
_LONGEST_SHOWN: Final = 60


def key_pairs(input_key: Keys, output_key: Keys | None) -> list[tuple[str, str]]:
    """Return pairs (key to read, key to write).

    Args:
        input_key: One key, or several.
        output_key: The same number of keys, in the same order; ``None`` writes to the input keys.
    """
    read = key_list("input_key", input_key)
    written = read if output_key is None else key_list("output_key", output_key)
    if len(read) != len(written):
        keys = counted(len(read), "keys")
        msg = f"input_key names {keys} ({read}), output_key {len(written)} ({written})"
        raise DefinitionError(msg)
    return list(zip(read, written, strict=True))


def key_list(option: str, keys: Keys) -> list[str]:
    """Return the columns that an option names as a list; the option may be one name."""
    names = [keys] if isinstance(keys, str) else list(keys)
    if not names:
        msg = f"{option} is {keys!r}; name at least one column"
        raise DefinitionError(msg)
    return names


class FieldKey:
    """The elements of a record that an input key (``name``), a column or a selector, selects."""

    def __init__(self, key: str) -> None:
        self.name = key
        self._selector = Selector(key) if is_selector(key) else None
        self.text: Callable[[Record], str] = self._selected if self._selector else self._plain
        """Return the selected elements as one text, joined by newlines; ``null`` is empty.

        Raises `NoTextError` if a value is no text, and `MissingColumnError`.
        """
        self.value: Callable[[Record], Any] = (
            self._selected_value if self._selector else methodcaller("get", key)
        )
        """Return the selected element, or a list of several; ``None`` if one of them is missing."""

    @property
    def plain(self) -> bool:
        """Whether the key is the name of a column."""
        return self._selector is None

    def checked_single(self, remedy: str) -> "FieldKey":
        """Return this key, which must select exactly one element.

        Raises:
            DefinitionError: It may select several; the message ends with the remedy.
        """
        if self._selector is not None and not self._selector.single:
            msg = f"key {self.name!r} may select several elements; {remedy}"
            raise DefinitionError(msg)
        return self

    def mapped(self, fn: Callable[[Any], Any], record: Record) -> Record:
        """Return ``record`` with ``fn`` applied to each selected element; missing is ``None``."""
        if self._selector is None:
            return record | {self.name: fn(record.get(self.name))}
        changed: Record = self._selector.map(fn, record)
        return changed

    def mapped_text(self, fn: Callable[[str], Any], record: Record) -> Record:
        """Return ``record`` with ``fn`` applied to each selected text; missing and null are ""."""
        return self.mapped(lambda value: fn(text_value(value, self.name)), record)

    def replaced(self, value: Any, record: Record, output_key: str | None = None) -> Record:
        """Return ``record`` with a value in ``output_key``, by default in each selected element."""
        if output_key is not None:
            return record | {output_key: value}
        return self.mapped(lambda _: value, record)

    def present(self, record: Record) -> list[Any]:
        """Return the selected elements; none if one of them is missing."""
        if self._selector is None:
            return [record[self.name]] if self.name in record else []
        try:
            return self._selector.values(record)
        except MissingColumnError:
            return []

    def _selected_value(self, record: Record) -> Any:
        elements = self.present(record)
        return elements[0] if len(elements) == 1 else elements or None

    def _plain(self, record: Record) -> str:
        value = record.get(self.name)
        return value if type(value) is str else text_value(value, self.name)

    def _selected(self, record: Record) -> str:
        assert self._selector is not None  # noqa: S101 - this is the method for selectors
        return "\n".join(text_value(value, self.name) for value in self._selector.values(record))


def text_value(value: object, key: str) -> str:
    """Return a value that an input key selects as a text; ``None`` is the empty text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise NoTextError(key, type(value).__name__, repr(value)[:_LONGEST_SHOWN])
