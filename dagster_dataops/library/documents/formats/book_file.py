"""`BookFile`: EPUB files. A page is an item of the spine, usually a chapter."""

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

from dagster_dataops.foundation.override import override
from dagster_dataops.library.documents.formats.document import (
    Limits,
    checked_page,
    damaged,
    described,
    encrypted,
)
from dagster_dataops.library.documents.formats.web_pages import HtmlDocument, decoded
from dagster_dataops.library.documents.formats.zipped_parts import ZippedParts, joined_name

_CONTAINER: Final = "META-INF/container.xml"
_ENCRYPTION: Final = "META-INF/encryption.xml"
_CONTAINERS: Final = "{urn:oasis:names:tc:opendocument:xmlns:container}"
_OPF: Final = "{http://www.idpf.org/2007/opf}"
_DC: Final = "{http://purl.org/dc/elements/1.1/}"
_CIPHER: Final = "{http://www.w3.org/2001/04/xmlenc#}CipherReference"


class BookFile(HtmlDocument):
    """An open EPUB file."""

    format = "epub"

    def __init__(self, path: Path, name: str, limits: Limits) -> None:
        super().__init__(name)
        self._parts = ZippedParts(path, name, limits)
        root = self._parts.xml(_CONTAINER).find(f".//{_CONTAINERS}rootfile")
        package_name = "" if root is None else root.get("full-path", "")
        package = self._parts.xml(package_name)
        folder = posixpath.dirname(package_name)
        items = {
            item.get("id", ""): joined_name(folder, item.get("href", ""))
            for item in package.iter(f"{_OPF}item")
        }
        self._chapters = [
            items.get(chapter, chapter)  # a page without an item fails as it is read
            for reference in package.iter(f"{_OPF}itemref")
            for chapter in [reference.get("idref", "")]
        ]
        self.page_count = len(self._chapters)
        if not self._chapters:
            raise damaged(name, "its spine has no items")
        self._check_readable()
        self._metadata = _metadata(package)
        self._last: tuple[int, str] | None = None

    def _check_readable(self) -> None:
        """Check that no chapter is encrypted; fonts may be."""
        if _ENCRYPTION in self._parts.names:
            locked = self._parts.xml(_ENCRYPTION).iter(_CIPHER)
            if {joined_name("", entry.get("URI", "")) for entry in locked} & set(self._chapters):
                raise encrypted(self._name, "leave it out, or get a copy without protection")

    @override
    def stored(self, page: int, source: str) -> bytes | None:
        part = joined_name(posixpath.dirname(self._chapters[page - 1]), source)
        return self._parts.read(part) if part in self._parts.names else None

    @override
    def metadata(self) -> Mapping[str, str | None]:
        return self._metadata

    @override
    def close(self) -> None:
        self._parts.close()

    @override
    def page(self, number: int) -> str:
        checked_page(self._name, number, self.page_count)
        if self._last is None or self._last[0] != number:
            self._last = number, decoded(self._parts.read(self._chapters[number - 1]))
        return self._last[1]


def _metadata(package: Element) -> Mapping[str, str | None]:
    elements: dict[str, list[str]] = {}
    for element in package.iter():
        if element.tag.startswith(_DC) and element.text:
            elements.setdefault(element.tag.removeprefix(_DC), []).append(element.text.strip())
    texts = {name: "; ".join(values) for name, values in elements.items()}
    changed = (element.text for element in package.iter(f"{_OPF}meta") if _is_change(element))
    return described(
        title=(elements.get("title") or [""])[0],
        author=texts.get("creator"),
        subject=texts.get("description"),
        keywords=texts.get("subject"),
        language=(elements.get("language") or [""])[0],
        created=(elements.get("date") or [""])[0],
        modified=next(changed, None),
        producer=texts.get("publisher"),
    )


def _is_change(element: Element) -> bool:
    return element.get("property") == "dcterms:modified"
