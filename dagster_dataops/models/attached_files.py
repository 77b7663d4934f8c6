"""Files in requests to models: images, sounds and documents, as parts of a message."""

import asyncio
import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from dagster_dataops.datasets.file_values.completeness.whole_content import check_whole
from dagster_dataops.datasets.file_values.media_types import ending_of_type, type_of_content
from dagster_dataops.datasets.file_values.reference import FileReference
from dagster_dataops.errors import FileError, FileReferenceError
from dagster_dataops.models.smaller_images import within
from dagster_dataops.records import Record

Kind: TypeAlias = Literal["image", "audio", "file"]
Sending: TypeAlias = Literal["data", "url"]
Detail: TypeAlias = Literal["auto", "low", "high"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
SENDINGS: Final = get_args(Sending)
DETAILS: Final = (None, *get_args(Detail))
MAX_BYTES: Final = 20_000_000
_LONGEST_SHOWN: Final = 200  # characters of a name
_FILE_ID: Final = "file_id"
_TYPES: Final[Mapping[Kind, tuple[str, ...]]] = {  # how types begin; films may hold sounds alone
    "image": ("image/",),
    "audio": ("audio/", "video/"),
    "file": ("",),
}
_NAMES: Final[Mapping[Kind, str]] = {"image": "image", "audio": "sound", "file": "file"}
_IMAGE_URL: Final = "image_url"
_SCHEMES: Final = frozenset({"http", "https", "data"})


class FormFile(NamedTuple):
    """A file as the field of a form."""

    name: str
    data: bytes
    media_type: str


@dataclass(frozen=True)
class Attachments:
    """How the files of a record become parts of a message.

    Attributes:
        columns: Columns that name files, by the kind of their files.
        send: With ``data`` the request has the content of a file, with ``url`` its address.
        detail: The detail at which a server looks at images; that of the server if ``None``.
        max_side: Pixels of the longer side of an image; larger ones are made smaller.
        max_bytes: The largest file.
    """

    columns: Mapping[Kind, Sequence[str]]
    send: Sending = "data"
    detail: Detail | None = None
    max_side: int | None = None
    max_bytes: int = MAX_BYTES

    def parts(self, record: Record) -> list["FilePart"]:
        """Return a part for each file of a record, in the order of the columns.

        Raises:
            FileReferenceError: A column is missing, or names no file.
        """
        return [
            FilePart(kind, value, column, self)
            for kind in KINDS
            for column in self.columns.get(kind, ())
            for value in _values(record, column)
        ]


class FilePart(dict[str, Any]):
    """A part of a message with a file. The file is read when the request is sent.

    As a dict, it has what the reply depends on: the kind and digest of the file, or its address,
    and how an image is changed. This is in the key of the stored reply, so that a reply is found
    without the file, if the record tells the digest.
    """

    def __init__(self, kind: Kind, value: object, column: str, attachments: Attachments) -> None:
        super().__init__(type=kind)
        self._kind, self._attachments = kind, attachments
        self._reference: FileReference | None = None
        self._read: bytes | None = None
        file_id = value.get(_FILE_ID) if isinstance(value, Mapping) else None
        if file_id is not None:
            self._take_id(file_id, column)
            return
        self._reference = reference = FileReference.of(value, f"column {column!r}")
        if attachments.send == "url":
            self["url"] = _address(reference, column)
        elif reference.digest:
            self["digest"] = reference.digest
        if kind == "image":
            named = {"detail": attachments.detail, "max_side": attachments.max_side}
            self.update({name: value for name, value in named.items() if value is not None})
        if kind == "file":
            self["name"] = reference.name

    @property
    def shown(self) -> str:
        """The kind and name of the file, for people."""
        name = self.get(_FILE_ID) if self._reference is None else self._reference.file
        return f"[{self._kind}: {str(name)[:_LONGEST_SHOWN]}]"

    async def identify(self) -> None:
        """Read the file for its digest, unless the part has a digest, an address or an id.

        Raises:
            FileError: There is no such file, or it cannot be read, is of another kind, or larger
                than allowed.
        """
        if self.keys().isdisjoint(("digest", "url", _FILE_ID)):
            await asyncio.to_thread(self._add_digest)

    def _add_digest(self) -> None:
        assert self._reference is not None  # noqa: S101 - else it has an id
        self._read = self._reference.read(self._attachments.max_bytes)
        self._check(self._reference, self._read)  # also if the reply is stored
        self["digest"] = digest = f"sha256:{sha256(self._read).hexdigest()}"
        self._reference = replace(self._reference, digest=digest)  # a later read must find it

    def sent(self) -> dict[str, Any]:
        """Return the part of a request of a chat.

        Raises:
            FileError: The file cannot be read, is of another kind, or larger than allowed.
            FileChangedError: It is not the file that the record names.
        """
        if _FILE_ID in self:
            return {"type": "file", "file": {_FILE_ID: self[_FILE_ID]}}
        if "url" in self:
            return self._with_address(self["url"])
        content = self.content()
        if self._kind == "audio":
            form = content.name.rpartition(".")[2]
            sound = {"data": base64.b64encode(content.data).decode(), "format": form}
            return {"type": "input_audio", "input_audio": sound}
        address = data_url(content.data, content.media_type)
        if self._kind == "image":
            return self._with_address(address)
        return {"type": "file", "file": {"filename": content.name, "file_data": address}}

    def content(self) -> FormFile:
        """Return the file; an image with a longer side of at most ``max_side`` pixels.

        Raises:
            FileError: The file cannot be read, is of another kind, or larger than allowed.
            FileChangedError: It is not the file that the record names.
        """
        reference = self._reference
        assert reference is not None  # noqa: S101 - else it has an id
        data, self._read = self._read, None
        if data is None:
            data = reference.read(self._attachments.max_bytes)
            self._check(reference, data)
        media_type = reference.media_type_of(data) or "application/octet-stream"
        side = self._attachments.max_side
        if self._kind == "image" and side is not None:
            data, media_type = within(side, data, media_type, reference.file)
        name = reference.name or "file"
        if self._kind == "audio":  # servers look at the ending alone
            name = f"sound{ending_of_type(media_type) or '.' + media_type.partition('/')[2]}"
        return FormFile(name, data, media_type)

    def _check(self, reference: FileReference, data: bytes) -> None:
        """Check that a file is whole, and its media type: by the content of images and sounds."""
        if not data:
            raise FileError(reference.file, "is empty", "leave the file out")
        media_type, name = reference.media_type_of(data), _NAMES[self._kind]
        if not (media_type or "").startswith(_TYPES[self._kind]):
            problem = f"is of {media_type or 'no known type'}, which is no {name}"
            raise FileError(reference.file, problem, "name its column in the option for its kind")
        if self._kind != "file" and type_of_content(data) is None:
            problem = f"is no {name} by its first bytes, but {media_type} by its name or record"
            raise FileError(reference.file, problem, "replace the file, or leave it out")
        try:
            check_whole(data)
        except ValueError as error:
            problem = f"is not sent: {error}"
            raise FileError(reference.file, problem, "mend the file, or leave it out") from None

    def _with_address(self, address: str) -> dict[str, Any]:
        name = f"{self._kind}_url"
        detail = {"detail": self["detail"]} if "detail" in self else {}
        return {"type": name, name: {"url": address, **detail}}

    def _take_id(self, file_id: object, column: str) -> None:
        where = f"column {column!r}"
        if not isinstance(file_id, str) or not file_id:
            raise FileReferenceError(where, f"has the file_id {file_id!r}", "give a text")
        if self._kind != "file":
            problem = (
                f"has a file_id, but is named in the option for files of the kind {self._kind}"
            )
            raise FileReferenceError(where, problem, "name the column in files=")
        self[_FILE_ID] = file_id


def data_url(data: bytes, media_type: str) -> str:
    """Return the content of a file as an address."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


async def identified(
    messages: Sequence[Mapping[str, Any]], attachments: Attachments
) -> list[Mapping[str, Any]]:
    """Return the messages; each file in them has a digest, an address or an id.

    An image of a chat record, ``{"type": "image_url", "image_url": {"url": ...}}``, whose ``url``
    is a path or a reference, becomes a part with that file.

    Raises:
        FileError: A file cannot be read, or is larger than allowed.
    """
    known = [
        _with_parts(message, attachments, f"messages[{at}]") for at, message in enumerate(messages)
    ]
    for part in _file_parts(known):
        await part.identify()
    return known


async def with_files(request: dict[str, Any]) -> dict[str, Any]:
    """Return the request with the content of its files.

    Raises:
        FileError: A file cannot be read, is of another kind, or larger than allowed.
        FileChangedError: A file is not the one that the record names.
    """
    if isinstance(request.get("file"), FilePart):  # of a form
        return {**request, "file": await asyncio.to_thread(request["file"].content)}
    messages = request.get("messages", ())
    if next(_file_parts(messages), None) is None:
        return request
    return {**request, "messages": await asyncio.to_thread(_filled, messages)}


def shown_content(content: object) -> str:
    """Return the content of a message as a text, with the kind and name of each file."""
    if not isinstance(content, list):
        return str(content)
    return "\n".join(map(_shown, content))


def _with_parts(
    message: Mapping[str, Any], attachments: Attachments, where: str
) -> Mapping[str, Any]:
    """Return a message whose images on this machine are parts with files."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [_with_file(part, attachments, where) for part in content]}


def _with_file(part: object, attachments: Attachments, where: str) -> object:
    place = part.get(_IMAGE_URL) if isinstance(part, Mapping) else None
    url = place.get("url") if isinstance(place, Mapping) else None
    if url is None or (isinstance(url, str) and _is_address(url)):
        return part
    assert isinstance(place, Mapping)  # noqa: S101 - it has a url
    detail = place.get("detail", attachments.detail)
    return FilePart("image", url, f"{where} {_IMAGE_URL}", replace(attachments, detail=detail))


def _filled(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [
        {**message, "content": [_sent(part) for part in message["content"]]}
        if isinstance(message.get("content"), list)
        else message
        for message in messages
    ]


def _shown(part: object) -> str:
    if isinstance(part, FilePart):
        return part.shown
    text = part.get("text") if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else str(part)


def _sent(part: object) -> object:
    return part.sent() if isinstance(part, FilePart) else part


def _file_parts(messages: Sequence[Mapping[str, Any]]) -> Iterator[FilePart]:
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            yield from (part for part in content if isinstance(part, FilePart))


def _values(record: Record, column: str) -> list[Any]:
    """Return the files that a column names: one, or a list of one or more."""
    if column not in record:
        names = ", ".join(map(repr, record)) or "no column"
        raise FileReferenceError(f"column {column!r}", f"is missing; there is {names}", "name one")
    value = record[column]
    if not isinstance(value, list):
        return [value]
    if not value:
        remedy = "filter out such records, or give them to an operator without this option"
        raise FileReferenceError(f"column {column!r}", "is an empty list of files", remedy)
    return value


def _is_address(name: str) -> bool:
    """Return whether a name is an address that servers of models take; its scheme has any case."""
    scheme, colon, _ = name.partition(":")
    return bool(colon) and scheme.lower() in _SCHEMES


def _address(reference: FileReference, column: str) -> str:
    if not _is_address(reference.file):
        where = f"column {column!r} ({reference.file})"
        remedy = "use send_files='data', or name files by http:// or https://"
        raise FileReferenceError(where, "is no address that a server can read", remedy)
    return reference.file
