"""Parts of Office files (DOCX, PPTX): main part, images, metadata, alternative content."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from xml.etree.ElementTree import Element

from dagster_dataops.files import File
from dagster_dataops.library.documents.formats.document import described
from dagster_dataops.library.documents.formats.zipped_parts import Relation, ZippedParts

R: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_COMPATIBLE: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
ALTERNATIVES: Final = f"{_COMPATIBLE}AlternateContent"
_CORE: Final = "docProps/core.xml"


def main_part(parts: ZippedParts, usual: str) -> str:
    """Return the name of the main part; ``usual`` if the file names none."""
    roots = parts.relations("").values()
    named = (root.target for root in roots if root.kind == "officeDocument" and not root.external)
    return next(named, usual)


def stored_images(
    parts: ZippedParts, relations: Mapping[str, Relation], ids: Iterable[str]
) -> Iterator[File]:
    """Yield the images with these ids, each once. Images outside of the file are left out."""
    for number in dict.fromkeys(ids):
        relation = relations.get(number)
        if relation is None or not relation.external:
            yield File(parts.read(number if relation is None else relation.target))


def metadata_of(parts: ZippedParts) -> dict[str, str | None]:
    """Return the metadata of an Office file."""
    properties: dict[str, str] = {}
    if _CORE in parts.names:
        properties = {
            element.tag.rpartition("}")[2]: element.text or "" for element in parts.xml(_CORE)
        }
    return described(
        **{name: properties.get(name) for name in ("title", "subject", "keywords", "language")},
        author=properties.get("creator"),
        created=properties.get("created"),
        modified=properties.get("modified"),
    )


def content_of(element: Element) -> Iterable[Element]:
    """Return the elements in an element; of several alternatives, those in the first."""
    if element.tag != ALTERNATIVES:
        return element
    choice = element.find(f"{_COMPATIBLE}Choice")
    return () if choice is None else choice
