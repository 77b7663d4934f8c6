"""The text of a page in its charset.

The charset is that of a byte order mark, else the label of the content type, else that in the first
kilobyte of the page: of an XML declaration or a ``<meta>`` element; else UTF-8. Labels mean what
the Encoding Standard of the WHATWG says, as in browsers; a few further names of the same charsets
are known. Any other label counts as none. The label ``gb2312``, for example, means GBK, and
``iso-8859-1`` means Windows-1252.
"""

import re
from collections.abc import Iterator
from email.message import Message
from typing import Final

import webencodings

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
    """Return content as text; invalid bytes are replaced by U+FFFD.

    Args:
        content: The bytes of the page.
        content_type: Its content type, such as ``text/html; charset=utf-8``; may be empty.
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
