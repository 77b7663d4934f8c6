"""`ChunkOperator`: an operator that writes the pieces of a text as records."""

from collections.abc import Iterable
from typing import Any

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.records import Record


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
        if output_key is None and not self._column.single:
            msg = f"input_key {input_key!r} may select several texts; give an output_key"
            raise DefinitionError(msg)

    def pieces(self, text: str) -> Iterable[str]:
        """Return the pieces of a text, in order."""
        raise NotImplementedError

    def forward(self, record: Record) -> list[Record]:
        pieces = self.pieces(self._column.text(record))
        made = [self._with_piece(record, piece) for piece in pieces]
        if self._index is not None:
            for number, one in enumerate(made):
                one[self._index] = number
        return made

    def _with_piece(self, record: Record, piece: str) -> Record:
        if self._written is not None:
            return {**record, self._written: piece}
        return self._column.mapped(lambda _: piece, record)
