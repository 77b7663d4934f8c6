"""``read_text``: the lines of text files."""

import codecs
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final

from dagster_dataops.errors import StreamDefinitionError, StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.files.blocks import BlockCursor, ParsedBlock, Terminator
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.file_stages import FileCursor, FileStage, Origin

_MARKS: Final = {  # encodings with a byte order mark: (mark, encoding after it)
    "utf-8": [(codecs.BOM_UTF8, "utf-8")],
    "utf-8-sig": [(codecs.BOM_UTF8, "utf-8"), (b"", "utf-8")],
    "utf-16": [(codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")],
    "utf-32": [(codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be")],
    "utf-16-le": [(codecs.BOM_UTF16_LE, "utf-16-le")],
    "utf-16-be": [(codecs.BOM_UTF16_BE, "utf-16-be")],
    "utf-32-le": [(codecs.BOM_UTF32_LE, "utf-32-le")],
    "utf-32-be": [(codecs.BOM_UTF32_BE, "utf-32-be")],
}
_DEFAULT_BYTE_ORDER: Final = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_HEAD_BYTES: Final = 1 << 20


class LineEnding(Enum):
    """The line terminator; ``INFER`` uses the one that ends the first line of the file."""

    INFER = "infer"
    LF = "lf"
    CRLF = "crlf"


class LineCursor(BlockCursor):
    """Read lines; whole blocks are decoded at once."""

    _encoding = ""
    _newline = "\n"

    @override
    def begin(self, content: Content) -> int:
        head = content.read_at(_HEAD_BYTES, 0)
        encoding, mark = split_mark(self.stage.encoding, head)
        self._encoding = encoding
        crlf = self.stage.line_ending is LineEnding.CRLF
        if self.stage.line_ending is LineEnding.INFER:
            first, ended, _ = head.partition("\n".encode(encoding))
            crlf = bool(ended) and first.endswith("\r".encode(encoding))
        self._newline = "\r\n" if crlf else "\n"
        width = len("\n".encode(encoding))
        self.terminator = Terminator(self._newline.encode(encoding), width)
        return len(mark)

    @override
    def parse(self, block: bytes, start: int) -> ParsedBlock:
        try:
            lines = block.decode(self._encoding).split(self._newline)
        except UnicodeDecodeError:
            return self._parse_lines(block, start)
        if not lines[-1]:
            lines.pop()
        return self._parsed_lines(lines)

    def _parse_lines(self, block: bytes, start: int) -> ParsedBlock:
        """Decode a block with invalid text line by line."""

        def parse(number: int, text: bytes) -> str:
            try:
                return text.decode(self._encoding)
            except UnicodeDecodeError as error:
                place = f"{self.path}, line {self.line_number(start, number)}"
                reason = f"is not {self.stage.encoding} text: {error}"
                raise StreamSourceError(place, reason) from error

        texts = block.split(self.terminator.text)
        lines, error, numbers = self.parse_each(
            enumerate(texts if texts[-1] else texts[:-1]), parse
        )
        return self._parsed_lines(lines, numbers)._replace(error=error)

    def _parsed_lines(self, lines: list[str], numbers: list[int] | None = None) -> ParsedBlock:
        stage = self.stage
        if stage.skip_empty:
            places = range(len(lines)) if numbers is None else numbers
            numbers = [number for number, line in zip(places, lines, strict=True) if line]
            lines = [line for line in lines if line]
        if stage.ltrim and stage.rtrim:
            lines = [line.strip() for line in lines]
        elif stage.rtrim:
            lines = [line.rstrip() for line in lines]
        elif stage.ltrim:
            lines = [line.lstrip() for line in lines]
        items = lines if stage.key is None else [{stage.key: line} for line in lines]
        return ParsedBlock(items, None, numbers)


@dataclass(eq=False)
class TextLines(FileStage):
    """Yield the lines of files without their terminators."""

    name: ClassVar[str] = "read_text"
    file_cursor: ClassVar[type[FileCursor]] = LineCursor
    key: str | None
    encoding: str
    line_ending: LineEnding
    ltrim: bool
    rtrim: bool
    skip_empty: bool
    block_size: int
    origin: Origin


def split_mark(encoding: str, head: bytes) -> tuple[str, bytes]:
    """Return the encoding after the byte order mark of a file, and the mark."""
    for mark, followed in _MARKS.get(encoding, []):
        if head.startswith(mark):
            return followed, mark
    return _DEFAULT_BYTE_ORDER.get(encoding, encoding), b""


def known_encoding(encoding: str | None, stage: str = "read_text") -> str:
    """Return Python's name of an encoding; UTF-8 for ``None``."""
    try:
        return codecs.lookup(encoding or "utf-8").name
    except LookupError:
        raise StreamDefinitionError(stage, f"unknown encoding {encoding!r}") from None
