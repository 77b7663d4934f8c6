"""The stage and cursor of ``read_warc``, resumable at any record."""

import base64
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from email.message import Message
from typing import Any, ClassVar, Final

import webencodings
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeadersParser

from dagster_dataops.errors import MissingExtraError, StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.readers.row_groups import GroupCursor, RowChunk
from dagster_dataops.readers.warc.http_content import http_content
from dagster_dataops.readers.warc.warc_frames import (
    BLANK_LINE,
    BadPartError,
    WarcPart,
    next_mark,
    warc_parts,
)
from dagster_dataops.streams.core.item_failures import FailureCounter
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.file_stages import FileCursor, FileStage
from dagster_dataops.streams.files.locations import Location

_PRESCANNED_BYTES: Final = 1024
_COMMENT: Final = re.compile(rb"<!--.*?-->", re.DOTALL)
_META: Final = re.compile(rb"<meta[\s/][^>]*?charset\s*=\s*[\"']?\s*([^\s\"'/>;]+)", re.IGNORECASE)
_XML: Final = re.compile(rb"\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']([^\"']+)[\"']")
# Pages name these in ASCII, so that they cannot be right: the standard has others in their place.
_IN_ASCII: Final = {
    "utf-16be": "utf-8", "utf-16le": "utf-8", "x-user-defined": "windows-1252",
}  # fmt: skip
_FURTHER_NAMES: Final = {
    "cp932": "shift_jis", "cp936": "gbk", "cp949": "euc-kr", "cp950": "big5", "latin-1": "latin1",
    "ms949": "euc-kr", "utf_8": "utf-8",
}  # fmt: skip
_WIDER: Final = {"gbk": "gb18030"}  # the standard decodes both alike; Python does not


def page_text(content: bytes, content_type: str) -> str:
    """Return the text of a page in its charset; invalid bytes are replaced.

    The charset is that of a byte order mark, else the label of the content type, else that in the
    first kilobyte of the page: of an XML declaration or a ``<meta>`` element; else UTF-8. Labels
    mean what the Encoding Standard of the WHATWG says, as in browsers; a few further names of the
    same charsets are known. Any other label counts as none. The label ``gb2312``, for example,
    means GBK, and ``iso-8859-1`` means Windows-1252.
    """
    name = next(_names(content, content_type), "utf-8")
    text, _ = webencodings.decode(content, _WIDER.get(name, name))
    return str(text)


def _names(content: bytes, content_type: str) -> Iterator[str]:
    """Yield the names of the charsets that are declared, the most reliable first."""
    name = _name_of(_label_of(content_type) or "")
    if name is not None:
        yield name
    head = _COMMENT.sub(b"", content[:_PRESCANNED_BYTES])
    for declared in (_XML.match(head), _META.search(head)):
        name = None if declared is None else _name_of(declared[1].decode("latin-1"))
        if name is not None:
            yield _IN_ASCII.get(name, name)


def _name_of(label: str) -> str | None:
    """Return the name of the charset with a label; ``None`` if it is not known."""
    encoding = webencodings.lookup(_FURTHER_NAMES.get(label.strip().lower(), label))
    return None if encoding is None else str(encoding.name)


def _label_of(content_type: str) -> str | None:
    message = Message()
    message["Content-Type"] = " ".join(content_type.split())
    try:
        charset = message.get_param("charset")
    except (LookupError, ValueError):  # of the RFC 2231 form, which may name any codec
        return None
    return charset if isinstance(charset, str) else None


_OF_HTTP: Final = frozenset({"request", "response", "revisit"})  # types of records
_HTTP: Final = ("http:", "https:")
_HTTP_HEAD: Final = re.compile(rb"HTTP/[0-9]|ICY [0-9]|[A-Z]{1,20} [^\r\n]* HTTP/[0-9]")


class WarcCursor(GroupCursor):
    """Read records. A group is a part of the file, identified by its byte offset."""

    def __init__(self, stage: Any, location: Location, counter: FailureCounter) -> None:
        if location.compression == "gzip":  # decompressed record by record instead
            location = replace(location, compression=None)
        super().__init__(stage, location, counter)

    @override
    def chunks(self, group: int, row: int) -> Iterator[RowChunk]:
        types = self.stage.types
        with self.location.opened() as content:
            for begin, frames in self._parts(content, group):
                for number, frame in enumerate(frames):
                    is_passed = begin == group and number < row
                    if not is_passed and (types is None or frame.kind in types):
                        yield RowChunk(begin, number, self._records(frame.content, begin))

    def _parts(self, content: Content, begin: int) -> Iterator[WarcPart]:
        """Yield the parts of the file; handle the bad ones, and go on at the next good one."""
        at: int | None = begin
        while at is not None:
            try:
                yield from warc_parts(content, at)
            except BadPartError as error:
                if content.failure is None:
                    self._handle(error.begin, error.reason, error)
                    at = next_mark(content, error.begin + 1)
                    continue
            if content.failure is not None:
                raise content.failure
            return

    def _records(self, content: bytes, begin: int) -> list[dict[str, Any]]:
        """Return the record in some bytes; nothing, if it is handled as a failure."""
        try:
            return [_record(content, binary=self.stage.binary)]
        except MissingExtraError as error:
            self._handle(begin, str(error), error)
        except Exception as error:  # noqa: BLE001 - warcio raises various errors for bad headers
            reason = f"cannot be read: {type(error).__name__}: {error}"
            self._handle(begin, reason, error)
        return []

    def _handle(self, begin: int, reason: str, cause: Exception) -> None:
        place = f"{self.location.path}, record at byte {begin}"
        error = StreamSourceError(place, reason)
        error.__cause__ = cause
        self.counter.handle(place, error)


@dataclass(eq=False)
class WarcFiles(FileStage):
    """Yield the records of WARC files."""

    name: ClassVar[str] = "read_warc"
    file_cursor: ClassVar[type[FileCursor]] = WarcCursor
    types: tuple[str, ...] | None
    binary: bool
    file_key: str | None


def _record(whole: bytes, *, binary: bool) -> dict[str, Any]:
    """Return a WARC record as a dict; HTTP transfer and content encodings are removed."""
    record = next(iter(ArchiveIterator(io.BytesIO(whole), no_record_parse=True)))
    if _has_http_head(record, whole):
        parser = StatusAndHeadersParser([], verify=False)
        record.http_headers = parser.parse(record.raw_stream)
    headers, http = record.rec_headers, record.http_headers
    kind = (http or headers).get_header("Content-Type")
    status = http.get_statuscode() if http is not None and record.rec_type == "response" else ""
    content = http_content(record)
    packed = base64.b64encode(content).decode() if binary else page_text(content, kind or "")
    return {
        "id": headers.get_header("WARC-Record-ID"),
        "type": record.rec_type,
        "url": headers.get_header("WARC-Target-URI"),
        "date": headers.get_header("WARC-Date"),
        "status": int(status) if status.isdigit() else None,
        "content_type": kind,
        "base64" if binary else "text": packed,
    }


def _has_http_head(record: Any, whole: bytes) -> bool:
    """Return whether a record holds an HTTP message; not one of HTTP/0.9, which has no head."""
    url = record.rec_headers.get_header("WARC-Target-URI")
    if record.rec_type not in _OF_HTTP or not (url is None or url.startswith(_HTTP)):
        return False
    head_end = BLANK_LINE.search(whole)
    return head_end is not None and _HTTP_HEAD.match(whole, head_end.end()) is not None
