"""The ends of PDF files and of zip archives, as office documents and EPUB are."""

import re
from typing import Final

PDF_END: Final = 64 << 10  # bytes at the end of a file, where its end mark must be
PDF_HEAD: Final = 2048
_LENGTH: Final = re.compile(rb"/Linearized\b[^>]{0,200}?/L\s+(\d{1,15})\b")  # of the whole file
_ZIP_END: Final = b"PK\5\6"
_ZIP_END_BYTES: Final = 22
_ZIP_TAIL: Final = _ZIP_END_BYTES + (1 << 16)
_OPEN: Final = 0xFFFFFFFF  # declared elsewhere, in 64 bits


def check_pdf(data: bytes) -> None:
    """Check that the mark of the end is there, and as many bytes as the file declares."""
    problem = fault_of_pdf(data[:PDF_HEAD], data[-PDF_END:], len(data))
    if problem is not None:
        msg = f"it is truncated: {problem}"
        raise ValueError(msg)


def fault_of_pdf(head: bytes, end: bytes, size: int) -> str | None:
    """Return why a PDF file is truncated; ``None`` if it is not, by what it declares.

    Args:
        head: Its first `PDF_HEAD` bytes.
        end: Its last `PDF_END` bytes.
        size: The number of its bytes.
    """
    stated = _LENGTH.search(head)
    if b"%%EOF" not in end:
        return f"its last {len(end):,} bytes have no end mark %%EOF"
    if stated is not None and size < int(stated[1]):
        return f"it has {size:,} of {int(stated[1]):,} bytes"
    return None


def check_archive(data: bytes) -> None:
    """Check that the list of files at the end of a zip archive is there."""
    at = data.rfind(_ZIP_END, max(0, len(data) - _ZIP_TAIL))
    end = data[at : at + _ZIP_END_BYTES] if at >= 0 else b""
    size, start = (int.from_bytes(end[place : place + 4], "little") for place in (12, 16))
    if len(end) == _ZIP_END_BYTES and (_OPEN in {size, start} or start + size <= at):
        return
    msg = "it is truncated: the list of its files is missing"
    raise ValueError(msg)
