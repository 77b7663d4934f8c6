"""``read_jsonl``: the records of JSON Lines files."""

from codecs import BOM_UTF8
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import orjson

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.records import WITHOUT_FLOATS, check_integers, decode
from dagster_dataops.streams.core.random_access import RandomAccess
from dagster_dataops.streams.core.stage import ReadContext
from dagster_dataops.streams.files.blocks import BlockCursor, ParsedBlock
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.file_stages import NOWHERE, FileCursor, FileStage, Origin
from dagster_dataops.streams.files.line_index import JsonAccess


class JsonCursor(BlockCursor):
    """Read records."""

    @override
    def begin(self, content: Content) -> int:
        if self._start:
            return 0
        return len(BOM_UTF8) if content.read_at(len(BOM_UTF8), 0) == BOM_UTF8 else 0

    @override
    def parse(self, block: bytes, start: int) -> ParsedBlock:
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        try:
            records = list(map(orjson.loads, lines))
        except orjson.JSONDecodeError:
            return self._parse_lines(lines, start)
        if set(map(type, records)) <= {dict} and not _may_hold_long_integers(records, block):
            return ParsedBlock(records)
        return self._parse_lines(lines, start)

    def _parse_lines(self, lines: list[bytes], start: int) -> ParsedBlock:
        def parse(number: int, line: bytes) -> Any:
            try:
                return decode(line)
            except ValueError as error:
                place = f"{self.path}, line {self.line_number(start, number)}"
                raise StreamSourceError(place, str(error)) from error

        numbered = [entry for entry in enumerate(lines) if entry[1] and not entry[1].isspace()]
        return self.parse_each(numbered, parse)


def _may_hold_long_integers(records: list[dict[str, Any]], block: bytes) -> bool:
    if set(map(type, chain.from_iterable(map(dict.values, records)))) <= WITHOUT_FLOATS:
        return False
    try:
        check_integers(block)
    except ValueError:
        return True
    return False


@dataclass(eq=False)
class JsonLines(FileStage):
    """Yield the records of files with one JSON object per line; blank lines are skipped."""

    name: ClassVar[str] = "read_jsonl"
    file_cursor: ClassVar[type[FileCursor]] = JsonCursor
    block_size: int
    origin: Origin = NOWHERE

    @override
    def access(self, context: ReadContext) -> RandomAccess | None:
        paths = None if any(self.origin) else self.files.plain_files()
        return None if paths is None else JsonAccess(paths, context.failures.counter(self.name))
