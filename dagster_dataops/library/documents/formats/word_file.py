"""`WordFile`: DOCX files, read by this package."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

from dagster_dataops.files import File
from dagster_dataops.foundation.override import override
from dagster_dataops.library.documents.formats.document import (
    Limits,
    Size,
    Table,
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
from dagster_dataops.library.documents.formats.word_styles import ParagraphForms, W
from dagster_dataops.library.documents.formats.word_texts import (
    CHARACTERS,
    LEFT_OUT,
    MATH_TEXT,
    cells_of,
    emphasis_of,
    image_ids,
    nearest,
    plain_text,
)
from dagster_dataops.library.documents.formats.zipped_parts import Relation

_TWIPS: Final = 20  # a point
_NUMBER: Final = re.compile(r"\d{1,9}(\.\d{1,9})?")
_CONTINUES: Final = {"continuous", "nextColumn"}  # types of sections that begin no page


class WordPage:
    """A page: its blocks, the ids of its images, and its size."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.images: list[str] = []
        self.size: Size | None = None


class WordFile(OfficeFile):
    """An open DOCX file.

    Word has no fixed pages. A page ends at an explicit break (of a page, of a section that begins
    a page, before a paragraph), and where Word began a new page when it saved the file
    (``lastRenderedPageBreak``); a file without these is one page.
    """

    format = "docx"

    def __init__(self, path: Path, name: str, limits: Limits) -> None:
        super().__init__(path, name, limits, "word/document.xml")
        body = self._root.find(f"{W}body")
        if body is None:
            raise damaged(name, "it has no body")
        forms = ParagraphForms(self._parts, self._relations.values())
        self._pages = _Reader(forms, self._relations).pages(body)
        self.page_count = len(self._pages)

    @override
    def size(self, page: int) -> Size | None:
        return self._page(page).size

    @override
    def blocks(self, page: int) -> list[Block]:
        return self._page(page).blocks

    @override
    def images(self, page: int) -> Iterator[File]:
        return stored_images(self._parts, self._relations, self._page(page).images)

    def _page(self, page: int) -> WordPage:
        return self._pages[checked_page(self._name, page, self.page_count) - 1]


class _Reader:
    """Divides the body of a document into pages."""

    def __init__(self, forms: ParagraphForms, relations: Mapping[str, Relation]) -> None:
        self._forms, self._relations = forms, relations
        self._pages = [WordPage()]
        self._sized = 0  # pages that have a size
        self._broken = False  # whether nothing has come since an explicit break
        self._text: list[str] = []
        self._marked: list[str] = []

    def pages(self, body: Element) -> list[WordPage]:
        """Return the pages of a body."""
        sections = list(body.iter(f"{W}sectPr"))
        begins = [_begins_page(section) for section in sections[1:]]
        self._after_sections = iter([*begins, False])
        self._add_blocks(body)
        for section in body.findall(f"{W}sectPr"):
            self._end_section(section)
        return self._pages

    def _add_blocks(self, parent: Element) -> None:
        for element in parent:
            if element.tag == f"{W}p":
                self._add_paragraph(element)
            elif element.tag == f"{W}tbl":
                self._add_table(element)
            elif element.tag == f"{W}sdt":
                for content in element.findall(f"{W}sdtContent"):
                    self._add_blocks(content)
            elif element.tag in {f"{W}customXml", f"{W}ins", f"{W}moveTo"}:
                self._add_blocks(element)

    def _add_paragraph(self, paragraph: Element) -> None:
        properties = paragraph.find(f"{W}pPr")
        self._form = self._forms.of(properties)
        page = self._pages[-1]
        if self._form.begins_page and (page.blocks or page.images) and not self._broken:
            self._break()
        self._add_inline(paragraph)
        self._end_block()
        section = None if properties is None else properties.find(f"{W}sectPr")
        if section is not None:
            self._end_section(section)

    def _end_block(self) -> None:
        """Make a block of the text since the last one."""
        text, marked = "".join(self._text), "".join(self._marked)
        self._text, self._marked = [], []
        if text.strip():
            form, self._broken = self._form, False
            self._pages[-1].blocks.append(Block(text, marked, form.heading, form.item, form.level))

    def _break(self) -> None:
        """Begin a page."""
        self._end_block()
        self._pages.append(WordPage())

    def _end_section(self, section: Element) -> None:
        """Give the pages of a section their size; begin a page if the next section does."""
        form = section.find(f"{W}pgSz")
        if form is not None:
            for page in self._pages[self._sized :]:
                page.size = _size(form)
            self._sized = len(self._pages)
        if next(self._after_sections, False):
            self._break()
            self._broken = True

    def _add_inline(self, parent: Iterable[Element]) -> None:
        for element in parent:
            tag = element.tag
            if tag in LEFT_OUT:
                continue
            if tag == f"{W}r":
                self._add_run(element)
            elif tag == f"{W}hyperlink":
                self._add_link(element)
            elif tag == MATH_TEXT:
                self._add_text(element.text or "")
            else:
                self._add_inline(content_of(element))

    def _add_link(self, link: Element) -> None:
        relation = self._relations.get(link.get(f"{R}id", ""))
        self._marked, before = [], self._marked
        self._add_inline(link)
        text = "".join(self._marked)
        if relation is not None and relation.external and text.strip():
            text = f"[{text}]({relation.target})"
        self._marked = [*before, text]

    def _add_run(self, run: Element) -> None:
        properties = run.find(f"{W}rPr")
        mark = "" if self._form.heading else emphasis_of(properties)
        self._marked, before = [], self._marked
        for element in run:
            self._add_part_of_run(element)
        text = "".join(self._marked)
        if mark and text.strip():
            inner = text.strip()
            text = text.replace(inner, f"{mark}{inner}{mark}")
        self._marked = [*before, text]

    def _add_part_of_run(self, element: Element) -> None:
        tag = element.tag
        if tag == f"{W}t":
            self._add_text(element.text or "")
        elif tag in CHARACTERS:
            self._add_text(CHARACTERS[tag])
        elif tag == f"{W}br":
            self._add_break(element.get(f"{W}type", ""))
        elif tag == f"{W}lastRenderedPageBreak":
            if not self._broken:
                self._break()
        elif tag in {ALTERNATIVES, f"{W}drawing", f"{W}pict", f"{W}object"}:
            self._add_drawing(element)

    def _add_text(self, text: str) -> None:
        self._broken = self._broken and not text.strip()
        self._text.append(text)
        self._marked.append(text)

    def _add_break(self, kind: str) -> None:
        if kind == "page":
            self._break()
            self._broken = True
        else:
            self._add_text("\n")

    def _add_drawing(self, drawing: Element) -> None:
        """Add the images of a drawing, and the paragraphs of its text boxes."""
        self._add_images(drawing)
        for box in nearest(drawing, f"{W}txbxContent"):
            texts = map(plain_text, nearest(box, f"{W}p"))
            self._add_text("".join(f"\n{text}" for text in texts if text))

    def _add_images(self, parent: Element) -> None:
        images = list(image_ids(parent))
        self._pages[-1].images += images
        self._broken = self._broken and not images

    def _add_table(self, table: Element) -> None:
        rows: Table = []
        for row in nearest(table, f"{W}tr"):
            if row.find(f".//{W}lastRenderedPageBreak") is not None and not self._broken:
                self._add_rows(rows)
                self._pages.append(WordPage())
                rows = []
            rows.append(cells_of(row, rows[-1] if rows else []))
            self._add_images(row)
            self._broken = False
        self._add_rows(rows)

    def _add_rows(self, rows: Table) -> None:
        if any(map(any, rows)):
            self._pages[-1].blocks.append(Block(rows=rows))


def _begins_page(section: Element) -> bool:
    kind = section.find(f"{W}type")
    return kind is None or kind.get(f"{W}val") not in _CONTINUES


def _size(form: Element) -> Size | None:
    sides = [form.get(f"{W}{side}", "") for side in "wh"]
    if not all(map(_NUMBER.fullmatch, sides)):
        return None
    width, height = (float(side) / _TWIPS for side in sides)
    return Size(width, height)
