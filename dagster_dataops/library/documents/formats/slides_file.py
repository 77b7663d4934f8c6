"""`SlidesFile`: PPTX files, read by this package. A page is a slide."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

from dagster_dataops.files import File
from dagster_dataops.foundation.override import override
from dagster_dataops.library.documents.formats.document import (
    Limits,
    Size,
    checked_page,
    damaged,
)
from dagster_dataops.library.documents.formats.office_blocks import Block
from dagster_dataops.library.documents.formats.office_parts import (
    ALTERNATIVES,
    OfficeFile,
    R,
    content_of,
    stored_images,
)

_P: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_A: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_TITLES: Final = {"title", "ctrTitle"}
_PLAIN: Final = {"subTitle", "dt", "ftr", "sldNum"}  # places whose paragraphs are no items
_EMU: Final = 12_700  # a point


class SlidesFile(OfficeFile):
    """An open PPTX file: its slides in order, with hidden ones, without notes."""

    format = "pptx"

    def __init__(self, path: Path, name: str, limits: Limits) -> None:
        super().__init__(path, name, limits, "ppt/presentation.xml")
        relations = self._relations
        self._slides = [
            relations[relation].target
            if relation in relations
            else relation  # which fails for that page
            for slide in self._root.iter(f"{_P}sldId")
            for relation in [slide.get(f"{R}id", "")]
        ]
        self._size = _size(self._root.find(f"{_P}sldSz"))
        self.page_count = len(self._slides)
        if not self._slides:
            raise damaged(name, "it has no slides")
        self._read: tuple[int, list[Block], list[str]] | None = None

    @override
    def size(self, page: int) -> Size | None:
        return self._size

    @override
    def blocks(self, page: int) -> list[Block]:
        return self._slide(page)[0]

    @override
    def images(self, page: int) -> Iterator[File]:
        relations = self._parts.relations(self._slides[page - 1])
        return stored_images(self._parts, relations, self._slide(page)[1])

    def _slide(self, page: int) -> tuple[list[Block], list[str]]:
        """Return the blocks of a slide and the ids of its images."""
        checked_page(self._name, page, self.page_count)
        if self._read is None or self._read[0] != page:
            slide = self._parts.xml(self._slides[page - 1])
            tree = slide.find(f"{_P}cSld/{_P}spTree")
            shapes = [] if tree is None else list(_shapes(tree))
            blocks = [block for shape in shapes for block in _blocks(shape)]
            images = [
                image
                for shape in shapes
                for blip in shape.iter(f"{_A}blip")
                if (image := blip.get(f"{R}embed"))
            ]
            self._read = page, blocks, images
        return self._read[1:]


def _size(element: Element | None) -> Size | None:
    sides = [] if element is None else [element.get(name, "") for name in ("cx", "cy")]
    if len(sides) == 2 and all(map(str.isdecimal, sides)):
        return Size(*(round(int(side) / _EMU, 2) for side in sides))
    return None


def _shapes(parent: Iterable[Element]) -> Iterator[Element]:
    """Yield the shapes of a slide, also those in groups."""
    for element in parent:
        if element.tag == f"{_P}grpSp":
            yield from _shapes(element)
        elif element.tag == ALTERNATIVES:
            yield from _shapes(content_of(element))
        elif element.tag in {f"{_P}sp", f"{_P}graphicFrame", f"{_P}pic", f"{_P}cxnSp"}:
            yield element


def _blocks(shape: Element) -> Iterator[Block]:
    """Yield the tables and paragraphs of a shape."""
    for table in shape.iter(f"{_A}tbl"):
        rows = [_cells(row) for row in table.findall(f"{_A}tr")]
        if any(map(any, rows)):
            yield Block(rows=rows)
    place = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
    kind = None if place is None else place.get("type", "body")
    body = shape.find(f"{_P}txBody")
    for paragraph in () if body is None else body.findall(f"{_A}p"):
        text = _text(paragraph)
        if kind in _TITLES:
            yield Block(text, heading=1)
        elif kind is None or kind in _PLAIN:
            yield Block(text)
        else:
            properties = paragraph.find(f"{_A}pPr")
            level = "0" if properties is None else properties.get("lvl", "0")
            yield Block(text, item="-", level=min(int(level), 9) if level.isdecimal() else 0)


def _cells(row: Element) -> list[str]:
    texts: list[str] = []
    for cell in row.findall(f"{_A}tc"):
        paragraphs = map(_text, cell.iter(f"{_A}p"))
        merged = cell.get("hMerge") in {"1", "true"} and texts
        texts.append(texts[-1] if merged else " ".join(filter(None, paragraphs)))
    return texts


def _text(paragraph: Element) -> str:
    parts = []
    for element in paragraph.iter():
        if element.tag == f"{_A}t":
            parts.append(element.text or "")
        elif element.tag == f"{_A}br":
            parts.append("\n")
    return "".join(parts)
