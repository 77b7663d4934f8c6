"""The ends of PDF files and of zip archives, as office documents and EPUB are."""

import re
from typing import Final

_PDF_END: Final = b"%%EOF"
_PDF_TAIL: Final = 1024  # bytes in which readers look for the end
_FILLING: Final = b"\0 \t\r\n\x1a"
_START: Final = re.compile(rb"startxref\s+(\d{1,12})\s")
_ZIP_END: Final = b"PK\5\6"
_ZIP_END_BYTES: Final = 22
_ZIP_TAIL: Final = _ZIP_END_BYTES + (1 << 16)
_OPEN: Final = 0xFFFFFFFF  # told in 64 bits elsewhere


def check_pdf(data: bytes) -> None:
    """Check that the mark of the end is there, as readers need it.

    Raises:
        ValueError: It is missing.
    """
    tail = data[-(1 << 16) :].rstrip(_FILLING)[-_PDF_TAIL:]
    at = tail.rfind(_PDF_END)
    found = list(_START.finditer(tail, 0, max(at, 0)))
    begin = max(data.find(b"%PDF-", 0, _PDF_TAIL), 0)
    if at < 0 or (found and int(found[-1][1]) + begin >= len(data)):
        msg = "it is truncated: the mark of its end, %%EOF, is missing"
        raise ValueError(msg)


def check_archive(data: bytes) -> None:
    """Check that the list of files at the end of a zip archive is there.

    Raises:
        ValueError: It is missing, or what it lists.
    """
    at = data.rfind(_ZIP_END, max(0, len(data) - _ZIP_TAIL))
    end = data[at : at + _ZIP_END_BYTES] if at >= 0 else b""
    size, start = (int.from_bytes(end[place : place + 4], "little") for place in (12, 16))
    if len(end) == _ZIP_END_BYTES and (_OPEN in {size, start} or start + size <= at):
        return
    msg = "it is truncated: the list of its files is missing"
    raise ValueError(msg)
