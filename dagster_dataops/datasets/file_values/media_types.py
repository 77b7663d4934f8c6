"""Media types of files: by their first bytes, and by their names."""

import re
from pathlib import PurePosixPath
from typing import Final

HEAD_BYTES: Final = 4096  # enough for `type_of_content`, but for some archives

_SIGNATURES: Final[tuple[tuple[int, bytes, str], ...]] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (0, b"\0\0\1\0", "image/x-icon"),
    (0, b"\0\0\0\x0cjP  \r\n\x87\n", "image/jp2"),
    (0, b"8BPS", "image/vnd.adobe.photoshop"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (0, b"fLaC", "audio/flac"),
    (0, b"OggS", "audio/ogg"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"#!AMR", "audio/amr"),
    (0, b"MThd", "audio/midi"),
    (8, b"AIFF", "audio/aiff"),
    (8, b"AIFC", "audio/aiff"),
    (0, b"FLV\1", "video/x-flv"),
    (0, b"\0\0\1\xba", "video/mpeg"),
    (0, b"\0\0\1\xb3", "video/mpeg"),
    (0, b"0&\xb2u\x8ef\xcf\x11", "video/x-ms-asf"),
    (0, b"{\\rtf", "application/rtf"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"%!PS", "application/postscript"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\xfd7zXZ\0", "application/x-xz"),
    (0, b"(\xb5/\xfd", "application/zstd"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (257, b"ustar", "application/x-tar"),
    (0, b"PAR1", "application/vnd.apache.parquet"),
    (0, b"\x93NUMPY", "application/x-npy"),
    (0, b"\x89HDF\r\n\x1a\n", "application/x-hdf5"),
)
_BRANDS: Final = {  # of ISO media files: the text after "ftyp"
    b"avif": "image/avif", b"avis": "image/avif", b"heic": "image/heic", b"heix": "image/heic",
    b"mif1": "image/heif", b"M4A ": "audio/mp4", b"M4B ": "audio/mp4", b"qt  ": "video/quicktime",
    b"3gp4": "video/3gpp", b"3gp5": "video/3gpp",
}  # fmt: skip
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_IN_ZIP: Final = (
    (b"word/document", f"{_OFFICE}wordprocessingml.document"),
    (b"ppt/presentation", f"{_OFFICE}presentationml.presentation"),
    (b"xl/workbook", f"{_OFFICE}spreadsheetml.sheet"),
)
_DECLARED: Final = re.compile(rb"mimetype(application/[\w.+-]+)")  # of EPUB and OpenDocument
_HTML: Final = re.compile(
    rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_SVG: Final = re.compile(
    rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*(<!DOCTYPE[^>]*>\s*)?<svg\b", re.DOTALL
)
_XML: Final = re.compile(rb"\s*<\?xml\b")
_MARKS: Final = (b"\xef\xbb\xbf",)
# Without FF FE, of layer I: so begin texts in UTF-16.
_MPEG_FRAME: Final = re.compile(rb"\xff[\xe2-\xe7\xf2-\xf7\xfa-\xfd][\x10-\xeb]", re.DOTALL)
_AAC_FRAME: Final = re.compile(rb"\xff[\xf0\xf1\xf8\xf9]", re.DOTALL)
_TAIL_BYTES: Final = 64 << 10  # of an archive, with the names of its files

_BY_ENDING: Final = {
    ".png": "image/png", ".apng": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg",
    ".jpe": "image/jpeg", ".jfif": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
    ".bmp": "image/bmp", ".dib": "image/bmp", ".tif": "image/tiff", ".tiff": "image/tiff",
    ".ico": "image/x-icon", ".jp2": "image/jp2", ".psd": "image/vnd.adobe.photoshop",
    ".avif": "image/avif", ".heic": "image/heic", ".heif": "image/heif", ".svg": "image/svg+xml",
    ".wav": "audio/wav", ".wave": "audio/wav", ".flac": "audio/flac", ".ogg": "audio/ogg",
    ".oga": "audio/ogg", ".opus": "audio/ogg", ".mp3": "audio/mpeg", ".m4a": "audio/mp4",
    ".aac": "audio/aac", ".amr": "audio/amr", ".aif": "audio/aiff", ".aiff": "audio/aiff",
    ".mid": "audio/midi", ".midi": "audio/midi", ".mp4": "video/mp4", ".m4v": "video/mp4",
    ".mov": "video/quicktime", ".3gp": "video/3gpp", ".mkv": "video/x-matroska",
    ".webm": "video/webm", ".avi": "video/x-msvideo", ".flv": "video/x-flv", ".mpg": "video/mpeg",
    ".mpeg": "video/mpeg", ".wmv": "video/x-ms-asf", ".ogv": "video/ogg",
    ".pdf": "application/pdf", ".ps": "application/postscript", ".rtf": "application/rtf",
    ".epub": "application/epub+zip", ".docx": f"{_OFFICE}wordprocessingml.document",
    ".pptx": f"{_OFFICE}presentationml.presentation", ".xlsx": f"{_OFFICE}spreadsheetml.sheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".odp": "application/vnd.oasis.opendocument.presentation",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".doc": "application/msword", ".ppt": "application/vnd.ms-powerpoint",
    ".xls": "application/vnd.ms-excel", ".html": "text/html", ".htm": "text/html",
    ".xhtml": "application/xhtml+xml", ".xml": "application/xml", ".txt": "text/plain",
    ".md": "text/markdown", ".csv": "text/csv", ".tsv": "text/tab-separated-values",
    ".json": "application/json", ".jsonl": "application/jsonl", ".zip": "application/zip",
    ".gz": "application/gzip", ".bz2": "application/x-bzip2", ".xz": "application/x-xz",
    ".zst": "application/zstd", ".7z": "application/x-7z-compressed",
    ".rar": "application/vnd.rar", ".tar": "application/x-tar", ".npy": "application/x-npy",
    ".parquet": "application/vnd.apache.parquet",
}  # fmt: skip
_SAME: Final = {  # other names, and types that cannot be distinguished by their content
    "image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/apng": "image/png",
    "image/x-ms-bmp": "image/bmp", "image/vnd.microsoft.icon": "image/x-icon",
    "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/vnd.wave": "audio/wav",
    "audio/x-flac": "audio/flac", "audio/mp3": "audio/mpeg", "audio/x-m4a": "audio/mp4",
    "audio/opus": "audio/ogg", "audio/vorbis": "audio/ogg", "application/ogg": "audio/ogg",
    "video/ogg": "audio/ogg", "audio/x-aiff": "audio/aiff", "audio/mp4": "video/mp4",
    "video/quicktime": "video/mp4", "video/3gpp": "video/mp4", "video/x-m4v": "video/mp4",
    "video/webm": "video/x-matroska", "audio/webm": "video/x-matroska", "video/avi":
    "video/x-msvideo", "video/x-ms-wmv": "video/x-ms-asf", "image/heif": "image/heic",
    "application/xhtml+xml": "text/html", "application/x-pdf": "application/pdf",
    "text/rtf": "application/rtf", "text/xml": "application/xml",
    "application/msword": "application/x-ole-storage",
    "application/vnd.ms-powerpoint": "application/x-ole-storage",
    "application/vnd.ms-excel": "application/x-ole-storage",
    "application/x-gzip": "application/gzip",
    "application/x-zip-compressed": "application/zip",
}  # fmt: skip


def type_of_content(data: bytes) -> str | None:
    """Return the media type that the bytes of a file show; ``None`` if they show none.

    Plain text, Markdown, CSV and JSON show none.

    Args:
        data: All bytes of the file, or its first `HEAD_BYTES`. Some office documents cannot be
            distinguished from other zip archives by their first bytes.
    """
    for at, signature, kind in _SIGNATURES:
        if data.startswith(signature, at) and (at != 8 or data[:4] in {b"RIFF", b"FORM"}):
            return kind
    for detector in (_iso_media, _matroska, _zipped, _document, _mpeg_audio):
        other = detector(data)
        if other is not None:
            return other
    return None


def _iso_media(data: bytes) -> str | None:
    if data[4:8] != b"ftyp":
        return None
    return _BRANDS.get(data[8:12], "video/mp4")


def _matroska(data: bytes) -> str | None:
    if not data.startswith(b"\x1aE\xdf\xa3"):
        return None
    return "video/webm" if b"webm" in data[:64] else "video/x-matroska"


def _zipped(data: bytes) -> str | None:
    if not data.startswith((b"PK\3\4", b"PK\5\6")):
        return None
    declared = _DECLARED.search(data[:256])
    if declared is not None:
        return declared[1].removesuffix(b"PK").decode()
    names = data[:HEAD_BYTES] + data[-_TAIL_BYTES:]
    return next((kind for name, kind in _IN_ZIP if name in names), "application/zip")


def _document(data: bytes) -> str | None:
    head = data[:HEAD_BYTES].removeprefix(_MARKS[0])
    if b"%PDF-" in head[:1024]:
        return "application/pdf"
    for pattern, kind in (
        (_HTML, "text/html"),
        (_SVG, "image/svg+xml"),
        (_XML, "application/xml"),
    ):
        if pattern.match(head):
            return kind
    return None


def _mpeg_audio(data: bytes) -> str | None:
    if _AAC_FRAME.match(data):
        return "audio/aac"
    return "audio/mpeg" if _MPEG_FRAME.match(data) else None


def type_of_name(name: str) -> str | None:
    """Return the media type that the ending of a path or URL tells; ``None`` if it tells none."""
    plain = re.split(r"[?#]", name)[0] if "://" in name and "#" not in name else name
    member = plain.rpartition("#")[2] or plain
    return _BY_ENDING.get(PurePosixPath(member).suffix.lower())


def ending_of_type(media_type: str) -> str:
    """Return the usual ending of the names of files of a media type; empty if it is not known.

    An ending of just this type is preferred to that of a type which cannot be distinguished.
    """
    known = [end for end, kind in _BY_ENDING.items() if same_type(kind, media_type)]
    named = media_type.partition(";")[0].strip().lower()
    return min(known, key=lambda end: _BY_ENDING[end] != named, default="")


def same_type(first: str, second: str) -> bool:
    """Return whether two media types are one, under other names or not distinguishable."""
    return plain_type(first) == plain_type(second)


def plain_type(media_type: str) -> str:
    """Return a media type in lower case, without parameters, under its usual name."""
    plain = media_type.partition(";")[0].strip().lower()
    return _SAME.get(plain, plain)
