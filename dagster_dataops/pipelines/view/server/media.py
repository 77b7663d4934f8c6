"""Files that records name: small pictures of images, and sounds and films by ranges.

A client names a record and a place in it, never a path. Only images, sounds and films are sent.
"""

import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from dagster_dataops.datasets.file_values.file_contents import is_reference
from dagster_dataops.datasets.file_values.media_types import type_of_content, type_of_name
from dagster_dataops.datasets.file_values.reference import FileReference
from dagster_dataops.datasets.file_values.result_roots import use_roots_above
from dagster_dataops.datasets.file_values.thumbnails import SHOWN, data_url
from dagster_dataops.errors import InputError
from dagster_dataops.pipelines.view.records.viewed_file import indexed
from dagster_dataops.pipelines.view.server.page_request import PageRequest
from dagster_dataops.pipelines.view.shown.shown_cells import is_local

_RANGE: Final = re.compile(r"bytes=(\d*)-(\d*)")
_BLOCK: Final = 256 << 10
_HEAD: Final = 4096
_PLAYED: Final = ("audio/", "video/")


@dataclass(frozen=True)
class _MediaPart:
    """A part of a file.

    It ends before the byte ``end``; ``size`` is that of the file.
    """

    media_type: str
    start: int
    end: int
    size: int
    blocks: Iterator[bytes]


def named_file(request: PageRequest) -> FileReference:
    """Return the file that a record names at a place.

    Raises:
        InputError: There is no such record or place, or it names no file of this machine.
        FileError: The reference is malformed.
    """
    number, column = request.number("line", 0), request.query.get("column", "")
    use_roots_above(request.location)
    with indexed(request.location, request.view.works) as file:
        file.work.wait(10)
        if file.index is None:
            reason = file.work.error or "is being indexed; load the page again"
            raise InputError(str(request.location), reason)
        line = file.record_of_line(number)
    value = line.shown().get(column) if line is not None else None
    return file_at(value, request.query.get("at"), str(request.location))


def file_at(value: Any, at: str | None, place: str) -> FileReference:
    """Return the file that a value names.

    ``at`` is the index in a list, if any; ``place`` is where the value is, for errors.

    Raises:
        InputError: It names no file of this machine.
        FileError: The reference is malformed.
    """
    if at is not None and isinstance(value, list):
        number = int(at) if at.isdecimal() and at.isascii() and len(at) < 10 else 0
        value = value[number] if number < len(value) else None
    if not is_reference(value) or not is_local(value["file"]):
        raise InputError(place, "the record names no file of this machine there")
    return FileReference.of(value)


def picture_of(reference: FileReference) -> Response:
    """Answer with a small picture of an image; with 404 if there is none."""
    url = data_url(reference)
    if not url:
        return Response(b"", 404)
    head, _, data = url.partition(",")
    media_type = head.removeprefix("data:").partition(";")[0]
    return Response(b64decode(data), media_type=media_type)


def sent_part(reference: FileReference, wanted: str, place: str) -> Response:
    """Answer with a file or a part of it; with 416 if it has no such part.

    ``wanted`` is the header ``Range``; empty for all.

    Raises:
        InputError: It is no image, sound or film.
        FileError: It cannot be read.
    """
    part = _file_part(reference, wanted, place)
    if part is None:
        return Response(b"", 416)
    length = part.end - part.start
    headers = {"accept-ranges": "bytes", "content-length": str(length)}
    if length < part.size:
        headers["content-range"] = f"bytes {part.start}-{part.end - 1}/{part.size}"
    status = 206 if length < part.size else 200
    return StreamingResponse(part.blocks, status, headers, part.media_type)


def _file_part(reference: FileReference, wanted: str, place: str) -> _MediaPart | None:
    stack = ExitStack()
    try:
        opened = stack.enter_context(reference.open())
        head = opened.read(_HEAD)
        size = opened.seek(0, 2)
        kind = _type_of(head, reference, place)
        limits = _range(wanted, size)
        if limits is None:
            stack.close()
            return None
    except BaseException:
        stack.close()
        raise
    return _MediaPart(kind, *limits, size, _blocks(stack, opened, *limits))


def _type_of(head: bytes, reference: FileReference, place: str) -> str:
    kind = type_of_content(head) or ""
    named = reference.media_type or type_of_name(reference.file) or ""
    if kind.startswith(_PLAYED) and named.startswith(_PLAYED):
        return named  # such as audio in an MP4 file
    if kind not in SHOWN and not kind.startswith(_PLAYED):
        reason = "the file that the record names there is no image, sound or film"
        raise InputError(place, reason)
    return kind


def _range(wanted: str, size: int) -> tuple[int, int] | None:
    """Return the first byte of a part and the one after it; ``None`` if there is no such part."""
    match = _RANGE.fullmatch(wanted.strip())
    if match is None or not (match[1] or match[2]):
        return 0, size
    if not match[1]:
        start, end = max(0, size - int(match[2])), size
    else:
        start, end = int(match[1]), min(size, int(match[2]) + 1 if match[2] else size)
    return (start, end) if start < end else None


def _blocks(stack: ExitStack, opened: Any, start: int, end: int) -> Iterator[bytes]:
    with stack:
        opened.seek(start)
        while start < end and (block := opened.read(min(_BLOCK, end - start))):
            yield block
            start += len(block)
