"""`Reader`: the base of custom readers, which are registered like operators.

@data_register("data.mini", columns={"text": str})
class Lines(Reader):
    def __init__(self, path: str):
        self.path = path

    def read_from(self, position):
        with open(self.path, "rb") as file:
            file.seek(position or 0)
            for line in iter(file.readline, b""):
                yield line, file.tell()

    def parse(self, line):
        return {"text": line.decode().rstrip()}
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dagster_dataops.errors import OperatorDefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.definition.reader_base import Readable
from dagster_dataops.readers.record_parsing import ItemParser, parse_stage
from dagster_dataops.streams.core.stage import SourceStage, State
from dagster_dataops.streams.core.state_values import from_json, to_json
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder

_NOT_OF_CONTENT: Final = frozenset({"__dataops__", "name"})


class Reader(Readable):
    """Reads items from any position and makes a record of each.

    Override ``read_from`` and, unless items are records, ``parse``; or override ``stream`` alone to
    return a stream. An instance holds its options and no changing state, because several cursors
    may read it at once. Options are the parameters of ``__init__``; their types are checked when
    the reader is constructed.
    """

    def read_from(self, position: Any) -> Iterator[tuple[Any, Any]]:
        """Yield each item with the position after it, starting at a position.

        Args:
            position: ``None`` for the start, or a position that was yielded: any JSON value, also
                with tuples and bytes.
        """
        del position
        reason = "a reader must define read_from(position) or stream()"
        raise OperatorDefinitionError(type(self).__name__, reason)

    def parse(self, item: Any) -> Any:
        """Return the record of an item; by default the item itself."""
        return item

    def identity(self) -> Any:
        """Return a value that identifies the content, such as a digest of the file.

        A position is refused if the value has changed. The default ``None`` disables this check.
        """
        return None

    @override
    def stream(self) -> DataPipelineBuilder:
        return DataPipelineBuilder(parse_stage(ReadFrom(self), ItemParser(self.parse)))


def reader_attributes(reader: Readable, known: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the attributes of a reader, without those in ``known``."""
    left_out = _NOT_OF_CONTENT | known
    return {name: value for name, value in vars(reader).items() if name not in left_out}


@dataclass(eq=False)
class ReadFrom(SourceStage):
    """Yield the items of a reader's ``read_from``. The position that it yielded last is saved."""

    name: ClassVar[str] = "read_from"
    saved: ClassVar[tuple[str, ...]] = ("position",)
    reader: Reader

    @override
    def options(self) -> dict[str, Any]:
        return {"read_from": type(self.reader).read_from, "values": reader_attributes(self.reader)}

    @override
    def identity(self) -> object:
        return self.reader.identity()

    @override
    def reset(self) -> None:
        self._position: Any = None

    @property
    def position(self) -> State:
        """The position as JSON."""
        return to_json(self._position)

    @position.setter
    def position(self, state: State) -> None:
        self._position = from_json(state)

    @override
    def items(self) -> Iterator[Any]:
        for item, position in self.reader.read_from(self._position):
            self._position = position
            yield item
