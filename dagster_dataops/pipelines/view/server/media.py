"""Files that records name: small pictures of images, and sounds and films by ranges.

A client names a record and a place in it, never a path. Only images, sounds and films are sent.
"""

import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

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
class MediaPart:
    """A part of a file.

    Attributes:
        media_type: The media type of the file.
        start: The first byte.
        end: The byte after the last.
        size: The size of the file.
        blocks: The bytes.
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
    value: Any = line.shown().get(column) if line is not None else None
    if "at" in request.query and isinstance(value, list):
        at = request.number("at", 0)
        value = value[at] if at < len(value) else None
    if not is_reference(value) or not is_local(value["file"]):
        raise InputError(str(request.location), "the record names no file of this machine there")
    return FileReference.of(value)


def thumbnail(request: PageRequest) -> tuple[str, bytes] | None:
    """Return media type and bytes of a small picture of an image; ``None`` if there is none."""
    url = data_url(named_file(request))
    if not url:
        return None
    head, _, data = url.partition(",")
    return head.removeprefix("data:").partition(";")[0], b64decode(data)


def file_part(request: PageRequest, wanted: str) -> MediaPart | None:
    """Return a part of a file.

    Args:
        request: It names the record, and the place of the file in it.
        wanted: The header ``Range``; empty for all.

    Returns:
        The part; ``None`` if the file has no such part.

    Raises:
        InputError: The record names no file there, or one that is no image, sound or film.
        FileError: The file cannot be read.
    """
    reference = named_file(request)
    stack = ExitStack()
    try:
        opened = stack.enter_context(reference.open())
        head = opened.read(_HEAD)
        size = opened.seek(0, 2)
        kind = _type_of(head, reference, request)
        found = _range(wanted, size)
        if found is None:
            stack.close()
            return None
    except BaseException:
        stack.close()
        raise
    return MediaPart(kind, *found, size, _blocks(stack, opened, *found))


def _type_of(head: bytes, reference: FileReference, request: PageRequest) -> str:
    kind = type_of_content(head) or ""
    named = reference.media_type or type_of_name(reference.file) or ""
    if kind.startswith(_PLAYED) and named.startswith(_PLAYED):
        return named  # such as audio in an MP4 file
    if kind not in SHOWN and not kind.startswith(_PLAYED):
        reason = "the file that the record names there is no image, sound or film"
        raise InputError(str(request.location), reason)
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
