"""Parts of Office files (DOCX, PPTX): main part, images, metadata, alternative content."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

from dagster_dataops.files import File
from dagster_dataops.foundation.override import override
from dagster_dataops.library.documents.formats.document import Document, Limits, Table, described
from dagster_dataops.library.documents.formats.office_blocks import Block, markdown_of, text_of
from dagster_dataops.library.documents.formats.zipped_parts import Relation, ZippedParts

R: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_COMPATIBLE: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
ALTERNATIVES: Final = f"{_COMPATIBLE}AlternateContent"
_CORE: Final = "docProps/core.xml"


class OfficeFile(Document):
    """An open Office file, whose pages have blocks. A subclass defines `blocks`.

    Its main part is ``usual`` if the file names none.
    """

    def __init__(self, path: Path, name: str, limits: Limits, usual: str) -> None:
        self._name, self._parts = name, ZippedParts(path, name, limits)
        roots = self._parts.relations("").values()
        named = (
            root.target for root in roots if root.kind == "officeDocument" and not root.external
        )
        main = next(named, usual)
        self._root, self._relations = self._parts.xml(main), self._parts.relations(main)

    @abstractmethod
    def blocks(self, page: int) -> list[Block]:
        """Return the blocks of a page."""

    @override
    def text(self, page: int) -> str:
        return text_of(self.blocks(page))

    @override
    def markdown(self, page: int) -> str:
        return markdown_of(self.blocks(page))

    @override
    def tables(self, page: int) -> list[Table]:
        return [block.rows for block in self.blocks(page) if block.rows is not None]

    @override
    def metadata(self) -> Mapping[str, str | None]:
        properties: dict[str, str] = {}
        if _CORE in self._parts.names:
            properties = {
                element.tag.rpartition("}")[2]: element.text or ""
                for element in self._parts.xml(_CORE)
            }
        author = {"author": properties.get("creator"), "producer": None}
        return described(**{**properties, **author})

    @override
    def close(self) -> None:
        self._parts.close()


def stored_images(
    parts: ZippedParts, relations: Mapping[str, Relation], ids: Iterable[str]
) -> Iterator[File]:
    """Yield the images with these ids, each once. Images outside of the file are left out."""
    for number in dict.fromkeys(ids):
        relation = relations.get(number)
        if relation is None or not relation.external:
            yield File(parts.read(number if relation is None else relation.target))


def content_of(element: Element) -> Iterable[Element]:
    """Return the elements in an element; of several alternatives, those in the first."""
    if element.tag != ALTERNATIVES:
        return element
    choice = element.find(f"{_COMPATIBLE}Choice")
    return () if choice is None else choice
