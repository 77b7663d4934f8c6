"""Apply a function to the texts of a record: `TextMapping`, and the base `TextOperator`."""

from collections.abc import Callable
from typing import Any

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.field_keys import FieldKey, Keys, key_pairs
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.records import Record


class TextMapping:
    """Applies a function to the texts of a record.

    Args:
        function: Returns the value to write for a text.
        input_key: The key of the text, or several keys; selectors are allowed.
        output_key: Where the values are written; by default, in place of the texts.

    Raises:
        DefinitionError: The numbers of keys differ, or an output key takes several elements.
    """

    def __init__(
        self, function: Callable[[str], Any], input_key: Keys, output_key: Keys | None = None
    ) -> None:
        self._function = function
        self._pairs = [(FieldKey(read), read, to) for read, to in key_pairs(input_key, output_key)]
        for column, read, written in self._pairs:
            if read != written:
                check_single(column, read, "output_key")

    def __call__(self, record: Record) -> Record:
        """Return ``record`` with the values; it may be changed.

        Raises:
            NoTextError: The value of a key is no text.
            MissingColumnError: A selector selects no element.
            SelectedElementError: An element that is changed in its place is no text.
        """
        for column, read, written in self._pairs:
            if read != written or column.plain:
                record[written] = self._function(column.text(record))
            else:
                record = column.mapped_text(self._function, record)
        return record


def check_single(column: FieldKey, key: str, option: str) -> None:
    """Check that a key selects one text.

    Raises:
        DefinitionError: It may select several.
    """
    if not column.single:
        msg = f"{option} takes one text, but input_key {key!r} may select several elements"
        raise DefinitionError(msg)


class TextOperator(Operator):
    """An operator from text to text. A subclass defines `changed`.

    Args:
        input_key: Key of the text: a column or a selector, or several.
        output_key: Where the texts are written, as many keys; ``None`` for ``input_key``.
        **kwargs: See `Operator`.
    """

    def __init__(
        self, input_key: Keys = "text", output_key: Keys | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._mapping = TextMapping(self.changed, input_key, output_key)

    def changed(self, value: str) -> str:
        """Return the text to write in place of ``value``."""
        raise NotImplementedError

    def forward(self, record: Record) -> Record:
        return self._mapping(record)
