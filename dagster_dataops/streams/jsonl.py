"""The records of a jsonl file as items."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import orjson
from typing_extensions import override

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.records import decode
from dagster_dataops.streams.access import Access
from dagster_dataops.streams.blocks import BlockCursor, Terminator, file_identity
from dagster_dataops.streams.finitude import Finitude
from dagster_dataops.streams.line_index import JsonAccess
from dagster_dataops.streams.stage import Cursor, Opening, Stage

_BOM: Final = b"\xef\xbb\xbf"
_LF: Final = Terminator(b"\n")


@dataclass(frozen=True, eq=False)
class JsonLines(Stage):
    """The records of a file, one JSON object a line; blank lines are none."""

    name: ClassVar[str] = "read_jsonl"
    file: str
    block_size: int

    @property
    @override
    def finitude(self) -> Finitude:
        return Finitude.FINITE

    @override
    def open(self, opening: Opening) -> Cursor:
        counter = opening.failures.counter(self.name)
        return JsonCursor(self.file, self.block_size, counter)

    @override
    def access(self, opening: Opening) -> Access:
        return JsonAccess([self.file], opening.failures.counter(self.name))

    @override
    def options(self) -> dict[str, Any]:
        return {}

    @override
    def identity(self) -> object:
        return file_identity(self.file)


class JsonCursor(BlockCursor):
    """Reads records."""

    @property
    @override
    def terminator(self) -> Terminator:
        return _LF

    @override
    def begin(self, descriptor: int) -> int:
        with open(descriptor, "rb", closefd=False) as file:
            return len(_BOM) if file.read(len(_BOM)) == _BOM else 0

    @override
    def parse(self, block: bytes, start: int) -> tuple[list[Any], Exception | None]:
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        try:
            records = list(map(orjson.loads, lines))
        except orjson.JSONDecodeError:
            return self._parse_lines(lines, start)
        if set(map(type, records)) <= {dict}:
            return records, None
        return self._parse_lines(lines, start)

    def _parse_lines(self, lines: list[bytes], start: int) -> tuple[list[Any], Exception | None]:
        records: list[Any] = []
        for number, line in enumerate(lines):
            if not line or line.isspace():
                continue
            try:
                records.append(decode(line))
            except ValueError as error:
                place = f"{self.path}, line {self.line_number(start, number)}"
                try:
                    self.counter.settle(line, StreamSourceError(place, str(error)))
                except Exception as final:  # noqa: BLE001 - raised behind the records before it
                    return records, final
        return records, None
