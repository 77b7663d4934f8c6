"""The texts of elements of DOCX files, and of the rows of their tables."""

from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from dagster_dataops.library.documents.formats.office_parts import R, content_of
from dagster_dataops.library.documents.formats.word_styles import W

MATH_TEXT: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
LEFT_OUT: Final = frozenset(
    f"{W}{name}" for name in ("del", "moveFrom", "instrText", "delText", "rPr", "pPr", "tblPr")
)
"""Elements whose texts are not read: deleted texts, codes of fields, properties."""
CHARACTERS: Final = {
    f"{W}tab": "\t", f"{W}cr": "\n", f"{W}noBreakHyphen": "-", f"{W}softHyphen": "\xad",
}  # fmt: skip


def cells_of(row: Element, above: list[str]) -> list[str]:
    """Return the texts of a row; a cell that spans rows or columns is in each of them."""
    texts: list[str] = []
    for cell in nearest(row, f"{W}tc"):
        text = " ".join(filter(None, map(plain_text, nearest(cell, f"{W}p"))))
        merged = cell.find(f"{W}tcPr/{W}vMerge")
        if merged is not None and merged.get(f"{W}val") != "restart" and len(texts) < len(above):
            text = above[len(texts)]
        span = cell.find(f"{W}tcPr/{W}gridSpan")
        width = span.get(f"{W}val", "1") if span is not None else "1"
        texts += [text] * (min(int(width), 1_000) if width.isdecimal() else 1)
    return texts


def plain_text(element: Element) -> str:
    """Return the text of an element, without what was deleted."""
    if element.tag in LEFT_OUT:
        return ""
    if element.tag in {f"{W}t", MATH_TEXT}:
        return element.text or ""
    if element.tag in {f"{W}br", *CHARACTERS}:
        return " "
    return "".join(map(plain_text, content_of(element)))


def nearest(parent: Element, tag: str) -> Iterator[Element]:
    """Yield the elements with a tag at any depth, without those inside of another one."""
    for element in content_of(parent):
        if element.tag == tag:
            yield element
        elif element.tag not in LEFT_OUT:
            yield from nearest(element, tag)


def image_ids(element: Element) -> Iterator[str]:
    """Yield the ids of the images in an element, of alternatives, those in the first."""
    for part in content_of(element):
        if part.tag.endswith(("}blip", "}imagedata")):
            yield from filter(None, (part.get(f"{R}{name}") for name in ("embed", "id")))
        yield from image_ids(part)


def emphasis_of(properties: Element | None) -> str:
    """Return the marks of Markdown for a run with these properties: bold, italic."""
    if properties is None:
        return ""
    return "".join(
        mark
        for name, mark in (("b", "**"), ("i", "*"))
        if (flag := properties.find(f"{W}{name}")) is not None
        and flag.get(f"{W}val", "1") not in {"0", "false", "off"}
    )
