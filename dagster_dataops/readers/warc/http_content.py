"""The content of an HTTP message, without its transfer and content encodings.

Archives of many crawlers hold the content decoded, with the header as it came: content that is not
in a form it is said to be in stays as it is, as in browsers, if it is text.
"""

import re
import zlib
from collections.abc import Callable
from typing import Any, Final

from dagster_dataops.errors import MissingExtraError

_PIECE_BYTES: Final = 64 << 10
_MAX_BYTES: Final = 1 << 30  # decompressed
_CHUNK: Final = re.compile(rb"[ \t]*([0-9a-fA-F]{1,16})[ \t]*(?:;[^\r\n]*)?\r?\n")  # its first line


def http_content(record: Any) -> bytes:
    """Return the content of a warcio record.

    Raises:
        MissingExtraError: The package for a content encoding is not installed.
        ValueError: A content encoding is unknown, or the content is damaged.
    """
    content = bytes(record.raw_stream.read())
    if record.http_headers is None:
        return content
    headers = list(record.http_headers.headers)
    for name in reversed(_names(headers, "transfer-encoding")):
        content = _unchunked(content) if name == "chunked" else _decoded(content, name)
    for name in reversed(_names(headers, "content-encoding")):
        content = _decoded(content, name)
    return content


def _names(headers: list[tuple[str, str]], wanted: str) -> list[str]:
    """Return the encodings that the header fields of a name list, in order."""
    lists = [value.lower().split(",") for name, value in headers if name.lower() == wanted]
    names = [name.strip(" \t\"'") for names in lists for name in names]
    return [name for name in names if name]


def _unchunked(content: bytes) -> bytes:
    """Return content without its chunks; as it is if it has none, or is damaged behind some.

    Of content that a crawler has cut, the bytes up to there are returned.
    """
    text, at, is_whole = bytearray(), 0, False
    while head := _CHUNK.match(content, at):
        size, begin = int(head[1], 16), head.end()
        if not size:
            return bytes(text)
        at = begin + size
        text += content[begin:at]
        behind = content[at : at + 2]
        if at >= len(content):
            return bytes(text) if is_whole or head[0].endswith(b"\r\n") else content
        if behind != b"\r\n" and behind[:1] != b"\n":
            return content
        at += 2 if behind == b"\r\n" else 1
        is_whole = True
    return bytes(text) if at >= len(content) else content


def _decoded(content: bytes, name: str) -> bytes:
    """Return content without one content encoding."""
    try:
        decode = _DECODE[name]
    except KeyError:
        if _is_text(content):
            return content
        msg = f"its content encoding {name!r} is unknown; known are {sorted(_DECODE)}"
        raise ValueError(msg) from None
    try:
        return decode(content)
    except (zlib.error, _NotEncodedError) as error:
        if _is_text(content):
            return content
        msg = f"its content is not valid {name} data: {error}"
        raise ValueError(msg) from error


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


class _NotEncodedError(ValueError):
    """Content is not in the encoding that is named."""


def _gzip(content: bytes) -> bytes:
    return _parts(content, lambda: zlib.decompressobj(wbits=zlib.MAX_WBITS | 16))


def _deflate(content: bytes) -> bytes:
    """Decompress zlib data, or deflate data alone, which some servers send."""
    try:
        return _parts(content, zlib.decompressobj)
    except zlib.error:
        return _parts(content, lambda: zlib.decompressobj(wbits=-zlib.MAX_WBITS))


def _zstd(content: bytes) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("the content encoding zstd", "zstd") from None
    unpacker = zstandard.ZstdDecompressor(max_window_size=_MAX_BYTES)
    try:
        return _parts(content, unpacker.decompressobj)
    except zstandard.ZstdError as error:
        raise _NotEncodedError(str(error)) from error


def _brotli(content: bytes) -> bytes:
    try:
        import brotli
    except ImportError:
        raise MissingExtraError("the content encoding br", "warc") from None
    unpacker, text = brotli.Decompressor(), bytearray()
    try:
        for at in range(0, len(content), _PIECE_BYTES):
            _add(text, unpacker.process(content[at : at + _PIECE_BYTES]))
    except brotli.error as error:
        raise _NotEncodedError(str(error)) from error
    return bytes(text)


def _parts(content: bytes, new_unpacker: Callable[[], Any]) -> bytes:
    """Decompress parts one after another. Content that a crawler has cut is decompressed so far."""
    text, at = bytearray(), 0
    while at < len(content):
        unpacker, begin = new_unpacker(), len(text)
        try:
            while at < len(content) and not unpacker.eof:
                piece = content[at : at + _PIECE_BYTES]
                _add(text, unpacker.decompress(piece))
                at += len(piece)
        except zlib.error:
            if begin and len(text) == begin:  # what follows the parts is no part
                break
            raise
        at -= len(unpacker.unused_data)
    return bytes(text)


def _add(text: bytearray, part: bytes) -> None:
    text += part
    if len(text) > _MAX_BYTES:
        msg = "its content is over 1 GiB when it is decompressed"
        raise ValueError(msg)


_DECODE: Final[dict[str, Callable[[bytes], bytes]]] = {
    "br": _brotli,
    "deflate": _deflate,
    "gzip": _gzip,
    "identity": bytes,
    "x-gzip": _gzip,
    "zstd": _zstd,
}
