"""`ParagraphForms`: headings and list items of a DOCX file, by its styles and lists."""

from collections.abc import Iterable
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

from dagster_dataops.library.documents.formats.zipped_parts import Relation, ZippedParts

W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_LEVELS: Final = 9  # of headings
_MOST_STYLES: Final = 50  # that are based on each other


class Form(NamedTuple):
    """The form of a paragraph.

    Attributes:
        heading: The level of a heading, from 1; 0 for no heading.
        item: ``-`` or ``1.`` for an item of a list; empty for no item.
        level: The level of an item, from 0.
        begins_page: Whether it begins a page.
    """

    heading: int = 0
    item: str = ""
    level: int = 0
    begins_page: bool = False


class ParagraphForms:
    """The forms of paragraphs, by their own properties and by their styles."""

    def __init__(self, parts: ZippedParts, relations: Iterable[Relation]) -> None:
        by_kind = {
            relation.kind: relation.target for relation in relations if not relation.external
        }
        self._styles = {
            style.get(f"{W}styleId", ""): style
            for style in _elements(parts, by_kind.get("styles"), "style")
        }
        self._numbered = _numbered_levels(parts, by_kind.get("numbering"))

    def of(self, properties: Element | None) -> Form:
        """Return the form of a paragraph with these properties."""
        style = _value(properties, "pStyle")
        chain = [
            element for element in [properties, *self._properties_of(style)] if element is not None
        ]
        item, level = self._item(chain)
        heading = self._heading(style, chain)
        return Form(heading, "" if heading else item, level, any(map(_begins_page, chain[:1])))

    def _properties_of(self, style: str) -> list[Element]:
        """Return the properties of a style and of those that it is based on."""
        sources = []
        for _ in range(_MOST_STYLES):
            element = self._styles.get(style)
            if element is None:
                break
            properties = element.find(f"{W}pPr")
            sources += [] if properties is None else [properties]
            style = _value(element, "basedOn")
        return sources

    def _heading(self, style: str, chain: list[Element]) -> int:
        outline = next((level for element in chain if (level := _value(element, "outlineLvl"))), "")
        if outline.isdecimal() and int(outline) < _LEVELS:
            return int(outline) + 1
        element = self._styles.get(style)
        name = (_value(element, "name") or style).lower().replace(" ", "")
        if name == "title":
            return 1
        level = name.removeprefix("heading")
        return int(level) if level != name and level.isdecimal() else 0

    def _item(self, chain: list[Element]) -> tuple[str, int]:
        for element in chain:
            numbering = element.find(f"{W}numPr")
            if numbering is not None:
                number, text = _value(numbering, "numId"), _value(numbering, "ilvl")
                level = min(int(text), _LEVELS) if text.isdecimal() else 0
                if number in {"", "0"}:
                    return "", 0
                return ("1." if (number, level) in self._numbered else "-"), level
        return "", 0


def _numbered_levels(parts: ZippedParts, part: str | None) -> frozenset[tuple[str, int]]:
    """Return the levels of lists whose items have numbers, as (id of the list, level)."""
    kinds: dict[str, list[int]] = {}
    for abstract in _elements(parts, part, "abstractNum"):
        kinds[abstract.get(f"{W}abstractNumId", "")] = [
            int(level.get(f"{W}ilvl", "0"))
            for level in abstract.findall(f"{W}lvl")
            if _value(level, "numFmt") not in {"bullet", "none", ""}
            and level.get(f"{W}ilvl", "0").isdecimal()
        ]
    return frozenset(
        (number.get(f"{W}numId", ""), level)
        for number in _elements(parts, part, "num")
        for level in kinds.get(_value(number, "abstractNumId"), ())
    )


def _elements(parts: ZippedParts, part: str | None, name: str) -> list[Element]:
    if part is None or part not in parts.names:
        return []
    return parts.xml(part).findall(f"{W}{name}")


def _value(parent: Element | None, name: str) -> str:
    element = None if parent is None else parent.find(f"{W}{name}")
    return "" if element is None else element.get(f"{W}val", "")


def _begins_page(properties: Element) -> bool:
    element = properties.find(f"{W}pageBreakBefore")
    return element is not None and element.get(f"{W}val", "1") not in {"0", "false", "off"}
