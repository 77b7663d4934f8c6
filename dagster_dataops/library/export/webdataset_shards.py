"""``export.WebDataset``: tar files with the members of each record in a row."""

import base64
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Final

from dagster_dataops.datasets.exporters.exporter import ExportRecords, Place, UnfitValueError
from dagster_dataops.datasets.file_values.file_contents import bytes_and_path, is_reference
from dagster_dataops.errors import DefinitionError, FileError
from dagster_dataops.library.export.tables import PathLike, export
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record, encode
from dagster_dataops.training.filestores.energon.energon_preparation import prepare_energon
from dagster_dataops.training.filestores.sample_names import split_name

BINARY: Final = frozenset(
    """
    avif bmp gif heic ico jp2 jpeg jpg png ppm tif tiff webp
    aac aif aiff flac m4a mp3 ogg opus wav wma
    avi m4v mkv mov mp4 mpeg mpg webm
    doc docx epub odt pdf ppt pptx xls xlsx
    arrow bin npy npz parquet pb pickle pkl pt pth pyd safetensors tb ten
    7z bz2 gz rar tar xz zip zst
    """.split()  # noqa: SIM905 - a list of words is easier to read
)
_DATA_URL: Final = re.compile(r"data:[^,]{0,200};base64,")
_NUMBER: Final = re.compile(r"%0?(\d*)d|\{:0?(\d*)d?\}")  # `%06d` or `{:06d}`
_ENDING: Final = re.compile(r"[^\s./\0][^\s/\0]*")
_KEY: Final = "__key__"
_BLOCK: Final = tarfile.BLOCKSIZE
_END_BYTES: Final = 2 * _BLOCK
_BUFFER_BYTES: Final = 1 << 20
_LONGEST_NAME: Final = 100  # of a plain header
# The header of a plain file, by the ustar format: its name, mode, owner, group, size, modification
# time, checksum, and type; then the format, and empty fields.
_BEFORE_SIZE: Final = b"0000644\0" + b"0000000\0" * 2
_AFTER_SIZE: Final = b"00000000000\0"
_AFTER_SUM: Final = (b"0" + bytes(100) + b"ustar\x0000").ljust(_BLOCK - 156, b"\0")
_SUM: Final = sum(_BEFORE_SIZE + _AFTER_SIZE + b" " * 8 + _AFTER_SUM)


class WebDataset(export):
    """Write the shards of a WebDataset: tar files that are read one after the other.

    ``pattern``, such as ``"shards/train-%06d.tar"`` (or ``{:06d}``), names the shards, numbered
    from 0, in a folder of their own. A shard ends before it would exceed ``shard_bytes``; a larger
    record has a shard of its own. Each record is a member ``<key>.json``. ``members`` writes
    columns instead: ``{"txt": "text", "json": "meta"}`` has one member per extension; texts are
    written as they are, other values as JSON, and null not at all. A record without any member
    fails the export: it would be no sample.

    Records hold bytes as base64 texts, as `read_files` and `read_parquet` give them. Members in
    ``binary`` have the bytes themselves; also those of a data URL, of a dict with the key
    ``bytes``, and of the file that a reference names, as `read_huggingface` gives images. Any other
    value there fails the export.

    ``files`` makes a member of every column that holds a reference to a file, such as
    ``000000000.image.png``; the other columns are in ``000000000.json``.

    The key of a record is its column ``__key__``, or else its position with nine digits. A key with
    a dot in its last part, one like that of the record before, or one whose members readers skip,
    such as ``__meta__/a``, fails the export, with file and line.

    ``energon`` also writes the files of ``energon prepare``, so that Megatron-Energon reads the
    folder as crude data; then no key may occur twice.

    The folder is replaced whole. A folder with files that no export wrote is refused.

    Args:
        pattern: Path of the shards with a place for their number.
        shard_bytes: Most bytes of a shard.
        members: Columns by the extension of their member; ``None`` writes the whole record.
        binary: Extensions whose members are bytes, such as ``["png", "bin"]``; ``None`` means those
            of images, audio, video, documents, arrays and archives that are commonly used.
        energon: Whether the files of ``energon prepare`` are written.
        files: Whether each column with a reference to a file is a member; not with ``members``.
    """

    format = "webdataset"
    place: Place = "pattern"

    added_later = frozenset({"binary", "files"})

    def __init__(
        self,
        pattern: PathLike,
        shard_bytes: PositiveInt = 1_000_000_000,
        members: Mapping[str, str] | None = None,
        *,
        binary: Sequence[str] | None = None,
        energon: bool = False,
        files: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        path = PurePath(pattern)
        if len(_NUMBER.findall(path.name)) != 1 or str(path.parent) in {"", "."}:
            msg = (
                f"pattern is {str(pattern)!r}; it must name a folder of its own and have one place "
                "for a number in the name, as in 'shards/train-%06d.tar'"
            )
            raise DefinitionError(msg)
        if "{partition}" in path.name:
            msg = f"pattern is {str(pattern)!r}; write {{partition}} as a folder, before the name"
            raise DefinitionError(msg)
        self._name, self._bytes, self._energon = path.name, shard_bytes, energon
        if files and members is not None:
            msg = "files=True makes the members itself; leave out members"
            raise DefinitionError(msg)
        self._files = files
        self._members = None if members is None else _checked_members(members)
        self._binary = BINARY if binary is None else frozenset(suffix.lower() for suffix in binary)

    def write(self, records: ExportRecords, place: Path) -> None:
        remaining = self._samples(records)
        sample = next(remaining, None)
        number = 0
        while sample is not None or not number:
            path = place / self._name_of(number)
            number += 1
            written = 0
            with path.open("xb", buffering=_BUFFER_BYTES) as tar:
                while sample is not None and (
                    not written or written + len(sample) <= self._bytes - _END_BYTES
                ):
                    written += tar.write(sample)
                    sample = next(remaining, None)
                tar.write(bytes(_END_BYTES + -(written + _END_BYTES) % tarfile.RECORDSIZE))
        if self._energon:
            prepare_energon(place)

    def _name_of(self, number: int) -> str:
        return _NUMBER.sub(lambda match: f"{number:0{match[1] or match[2] or 1}d}", self._name)

    def _samples(self, records: ExportRecords) -> Iterator[bytes]:
        """Yield the members of each record as they are in a tar file."""
        before = None
        for index, record in enumerate(records):
            key = record.get(_KEY, f"{index:09d}")
            fault = _fault(key) or self._skipped(f"{key}")
            if key == before:
                fault = f"the record before has the key {key!r}, too"
            if fault:
                remedy = f"Give each record another text without a dot in {_KEY}, or leave it out."
                raise UnfitValueError(index, _KEY, fault, remedy)
            before = key
            members = list(self._contents(index, record))
            if not members:
                columns = ", ".join((self._members or {}).values())
                problem = f"nothing is in the columns of its members ({columns})"
                raise UnfitValueError(index, "", problem, "Drop such records before.")
            yield b"".join(_member(f"{key}.{ending}", content) for ending, content in members)

    def _skipped(self, key: str) -> str:
        """Return why readers would skip a member of the sample; empty if they would not."""
        for ending in self._members or ("json",):
            if split_name(f"{key}.{ending}") != (key, ending):
                return f"the key is {key!r}, and readers skip a file named {key}.{ending}"
        return ""

    def _contents(self, index: int, record: Record) -> Iterator[tuple[str, bytes]]:
        if self._members is None:
            rest = {name: value for name, value in record.items() if name != _KEY}
            if self._files:
                for name in [name for name, value in rest.items() if is_reference(value)]:
                    yield _file_member(index, name, rest.pop(name))
            yield "json", encode(rest).rstrip(b"\n")
            return
        for ending, column in self._members.items():
            value = record.get(column)
            if value is not None and ending.lower().rpartition(".")[2] in self._binary:
                yield ending, _bytes_of(value, index, column)
            elif isinstance(value, str):
                yield ending, value.encode()
            elif value is not None:
                yield ending, encode({"": value})[4:-2]


def _checked_members(members: object) -> dict[str, str]:
    """Check a mapping of extensions to columns, and return it."""
    if not isinstance(members, Mapping) or not members:
        reason = "it must map extensions to columns, as in {'txt': 'text'}"
    elif not all(isinstance(text, str) for pair in members.items() for text in pair):
        reason = "extensions and columns must be texts"
    elif odd := [ending for ending in members if not _ENDING.fullmatch(ending)]:
        reason = f"{odd[0]!r} is no extension; use one such as 'txt'"
    elif len({ending.lower() for ending in members}) < len(members):
        reason = "readers ignore the case of extensions; each must differ from the others"
    else:
        return dict(members)
    msg = f"members is {members!r}; {reason}"
    raise DefinitionError(msg)


def _file_member(index: int, column: str, value: object) -> tuple[str, bytes]:
    """Return the extension and the bytes of the file that a column names."""
    if not _ENDING.fullmatch(column) or "." in column:
        problem = "the name of the column cannot be part of the name of a member"
        raise UnfitValueError(index, column, problem, "Rename the column.")
    content = _file_of(value, index, column)
    ending = PurePath(content["path"]).suffix.lower() or ".bin"
    return f"{column}{ending}", content["bytes"]


def _file_of(value: object, index: int, column: str) -> dict[str, Any]:
    try:
        return bytes_and_path(value, f"column {column!r}")
    except FileError as error:
        problem = f"the file {error.where} {error.found}"
        remedy = f"{error.remedy[:1].upper()}{error.remedy[1:]}, or drop such records before."
        raise UnfitValueError(index, column, problem, remedy) from error


def _bytes_of(value: object, index: int, column: str) -> bytes:
    """Return the bytes of a base64 text, a data URL, or a dict with the key ``bytes``."""
    if is_reference(value):
        data: bytes = _file_of(value, index, column)["bytes"]
        return data
    text = value.get("bytes") if isinstance(value, dict) else value
    if isinstance(text, str):
        head = _DATA_URL.match(text)
        try:
            return base64.b64decode(text[head.end() if head else 0 :], validate=True)
        except ValueError:
            pass
    problem = f"the value is no base64 text: {str(value)[:60]!r}"
    remedy = "Members with this extension are bytes; binary=[...] lists other extensions."
    raise UnfitValueError(index, column, problem, remedy)


def _fault(key: object) -> str:
    """Return why a value cannot be a key; empty if it can."""
    if not isinstance(key, str) or not key:
        return f"the key is {key!r}"
    parts = key.split("/")
    if "." in parts[-1] or "" in parts or ".." in parts or "\0" in key:
        return f"the key is {key!r}, which names no sample"
    return ""


def _member(name: str, content: bytes) -> bytes:
    """Return a file as it is in a tar file: header and padded content.

    `tarfile` takes three times as long; it writes the headers of long and foreign names.
    """
    padding = bytes(-len(content) % _BLOCK)
    if len(name) > _LONGEST_NAME or not name.isascii():
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(content), 0o644
        return info.tobuf(tarfile.PAX_FORMAT) + content + padding
    named, size = name.encode().ljust(_LONGEST_NAME, b"\0"), b"%011o\0" % len(content)
    checksum = b"%06o\0 " % (_SUM + sum(named) + sum(size))
    header = named + _BEFORE_SIZE + size + _AFTER_SIZE + checksum + _AFTER_SUM
    return header + content + padding
