"""`ZippedParts`: the parts of a document that is a zip archive, with limits on their size."""

import posixpath
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser
from zipfile import BadZipFile, LargeZipFile, ZipFile

from dagster_dataops.errors import FileError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.documents.formats.document import Limits, damaged, encrypted

_ENCRYPTED: Final = 1  # a flag of a part
_RELATION: Final = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_DEEPEST: Final = 1_000  # elements inside of each other
_STRICT: Final = re.compile(r"\{http://purl\.oclc\.org/ooxml/(\w+)/(\w+)\}")
_USUAL: Final = r"{http://schemas.openxmlformats.org/\1/2006/\2}"


class Relation(NamedTuple):
    """What a part of an Office file refers to.

    Attributes:
        kind: The last word of its type, such as ``image``.
        target: The name of a part; an address outside of the file if ``external``.
        external: Whether it is outside of the file. Such targets are never read.
    """

    kind: str
    target: str
    external: bool


class ZippedParts:
    """An open zip archive. Nothing is unpacked to the disk."""

    def __init__(self, path: Path, name: str, limits: Limits) -> None:
        self._name, self._limit = name, limits.max_bytes
        self._sizes: dict[str, int] = {}  # of the parts that were read
        try:
            self._zip = ZipFile(path)
        except (BadZipFile, LargeZipFile, NotImplementedError) as error:
            problem = f"is truncated or damaged: its zip archive cannot be read ({error})"
            raise FileError(name, problem, "fetch the file again, or leave it out") from None
        self.names = frozenset(self._zip.namelist())

    def read(self, part: str) -> bytes:
        """Return the content of a part."""
        try:
            info = self._zip.getinfo(part)
        except KeyError:
            raise damaged(self._name, f"its part {part!r} is missing") from None
        if info.flag_bits & _ENCRYPTED:
            raise encrypted(self._name, "save it without a password, or leave it out")
        self._check_size(part, info.file_size)
        try:
            with self._zip.open(info) as file:
                content = file.read(self._limit + 1)  # it may be larger than it declares
        except (BadZipFile, EOFError, NotImplementedError, OSError, zlib.error) as error:
            raise damaged(self._name, f"its part {part!r} cannot be unpacked ({error})") from None
        self._check_size(part, len(content))
        self._sizes[part] = len(content)
        return content

    def _check_size(self, part: str, size: int) -> None:
        if size + sum(self._sizes.values()) - self._sizes.get(part, 0) > self._limit:
            problem = f"is too large: with its part {part!r} it unpacks to more than max_bytes"
            remedy = "raise the limit, or leave the file out: it may be made to fill the memory"
            raise FileError(self._name, f"{problem}={self._limit:,} bytes", remedy)

    def xml(self, part: str) -> Element:
        """Return the root element of a part."""
        parser = XMLParser(target=_Builder())  # noqa: S314 - the builder refuses entities
        try:
            parser.feed(self.read(part))
            root: Element = parser.close()
        except (ParseError, _RefusedError) as error:
            raise damaged(self._name, f"its part {part!r} is no valid XML ({error})") from None
        return root

    def relations(self, part: str) -> Mapping[str, Relation]:
        """Return what a part refers to, by id."""
        folder, name = posixpath.split(part)
        file = posixpath.join(folder, "_rels", f"{name}.rels")
        if file not in self.names:
            return {}
        return {
            element.get("Id", ""): _relation(element, folder)
            for element in self.xml(file).iter(_RELATION)
        }

    def close(self) -> None:
        """Close the archive."""
        self._zip.close()


class _RefusedError(Exception):
    """The XML is not accepted."""


class _Builder(TreeBuilder):
    """Builds a tree; refuses document types, which documents need for entities alone."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def doctype(self, name: str, *_: str | None) -> None:
        """Refuse a document type."""
        raise _RefusedError(f"it has the document type {name}")

    @override
    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _RefusedError(f"its elements are nested more than {_DEEPEST:,} levels")
        if "{http://purl.oclc.org/ooxml/" in tag:  # Office files of the form "strict"
            tag = _STRICT.sub(_USUAL, tag)
            attrs = {_STRICT.sub(_USUAL, name): value for name, value in attrs.items()}
        return super().start(tag, attrs)

    @override
    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(_STRICT.sub(_USUAL, tag) if "{http://purl" in tag else tag)


def _relation(element: Element, folder: str) -> Relation:
    kind = element.get("Type", "").rpartition("/")[2]
    target, external = element.get("Target", ""), element.get("TargetMode") == "External"
    return Relation(kind, target if external else joined_name(folder, target), external)


def joined_name(folder: str, target: str) -> str:
    """Return the name of the part that a part in ``folder`` calls ``target``."""
    plain = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", folder, plain)).lstrip("/")
