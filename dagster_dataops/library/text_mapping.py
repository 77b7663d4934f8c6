"""Operators on texts: `TextMapping`, and the base classes `TextOperator` and `ChunkOperator`."""

from collections.abc import Callable, Iterable
from typing import Any

from dagster_dataops.library.field_keys import FieldKey, Keys, key_pairs
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.records import Record


class TextMapping:
    """Applies a function to the texts of a record.

    The values are written to ``output_key``, by default in place of the texts. Both keys may be
    several, and selectors.

    Raises:
        DefinitionError: The numbers of keys differ, or an output key takes several elements.
    """

    def __init__(
        self, function: Callable[[str], Any], input_key: Keys, output_key: Keys | None = None
    ) -> None:
        self._function = function
        self._pairs = [(FieldKey(read), to) for read, to in key_pairs(input_key, output_key)]
        for column, written in self._pairs:
            if column.name != written:
                column.checked_single("output_key takes one text")

    def __call__(self, record: Record) -> Record:
        """Return ``record`` with the values; it may be changed.

        Raises:
            NoTextError: The value of a key is no text.
            MissingColumnError: A selector selects no element.
            SelectedElementError: An element that is changed in its place is no text.
        """
        for column, written in self._pairs:
            if column.name != written or column.plain:
                record[written] = self._function(column.text(record))
            else:
                record = column.mapped_text(self._function, record)
        return record


class TextOperator(Operator):
    """An operator from a text to a text or another value. A subclass defines `changed`.

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

    def changed(self, value: str) -> Any:
        """Return the value to write for a text."""
        raise NotImplementedError

    def forward(self, record: Record) -> Record:
        return self._mapping(record)


class ChunkOperator(Operator):
    """Read a text, and make a copy of its record for each piece. A subclass defines `pieces`.

    Args:
        input_key: Key of the text: a column, or a selector.
        output_key: Key of the piece; ``None`` for ``input_key``.
        index_key: Column of the number of the piece, from 0; ``None`` writes none.
        **kwargs: See `Operator`.

    Raises:
        DefinitionError: Pieces cannot be written to ``input_key``, which may select several texts.
    """

    def __init__(
        self,
        input_key: str = "text",
        output_key: str | None = None,
        *,
        index_key: str | None = "chunk",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column, self._written, self._index = FieldKey(input_key), output_key, index_key
        if output_key is None:
            self._column.checked_single("give an output_key")

    def pieces(self, text: str) -> Iterable[str]:
        """Return the pieces of a text, in order."""
        raise NotImplementedError

    def forward(self, record: Record) -> list[Record]:
        pieces = self.pieces(self._column.text(record))
        copies = [self._column.replaced(piece, record, self._written) for piece in pieces]
        if self._index is not None:
            for number, copy in enumerate(copies):
                copy[self._index] = number
        return copies
