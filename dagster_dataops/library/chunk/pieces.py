"""Write the pieces of a text as records."""

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.records import Record


class Pieces:
    """Reads a text, and makes a copy of its record for each piece.

    Args:
        input_key: The key of the text.
        output_key: The key of a piece; ``None`` for ``input_key``.
        index_key: The key of the number of the piece, from 0; ``None`` writes no number.

    Raises:
        DefinitionError: Pieces cannot be written to ``input_key``, which may select several texts.
    """

    def __init__(self, input_key: str, output_key: str | None, index_key: str | None) -> None:
        self._column, self._written, self._index = FieldKey(input_key), output_key, index_key
        self.text = self._column.text
        if output_key is None and not self._column.single:
            msg = f"input_key {input_key!r} may select several texts; give an output_key"
            raise DefinitionError(msg)

    def records(self, record: Record, pieces: list[str]) -> list[Record]:
        """Return one record for each piece, in order."""
        made = [self._with_piece(record, piece) for piece in pieces]
        if self._index is not None:
            for number, one in enumerate(made):
                one[self._index] = number
        return made

    def _with_piece(self, record: Record, piece: str) -> Record:
        if self._written is not None:
            return {**record, self._written: piece}
        return self._column.mapped(lambda _: piece, record)


def check_limit(option: str, value: int | None, least: int) -> None:
    """Check a limit.

    Raises:
        DefinitionError: It is below ``least``.
    """
    if value is not None and value < least:
        msg = f"{option} must be at least {least}, got {value}"
        raise DefinitionError(msg)
