"""`File`: the bytes of a file that an operator returns."""

from dataclasses import dataclass, field
from typing import Final, cast

MADE: Final[list[bool]] = []
"""Has an element if this process has made a `File`. Else no record needs to be searched."""


@dataclass(frozen=True)
class File:
    """A file that an operator returns in a field; its record holds a reference to it.

    The file is stored once by its content, as ``files/ab/cdef...`` below the root of the results,
    before the record counts as finished. It may be in a list or a dict of the field.

        def thumbnail(record):
            record["thumbnail"] = File(shrunk(record["file"]), "image/png")
            return record

    Attributes:
        data: The content.
        media_type: The media type; by default the one that the content shows, else
            ``application/octet-stream``.

    Raises:
        TypeError: The content is no bytes, or the media type no text.
    """

    data: bytes = field(repr=False)
    media_type: str = ""

    def __post_init__(self) -> None:
        data, kind = cast("tuple[object, object]", (self.data, self.media_type))
        if not isinstance(data, bytes) or not isinstance(kind, str):
            kinds = f"{type(self.data).__name__} and {type(self.media_type).__name__}"
            msg = f"File takes bytes and the text of a media type; got {kinds}"
            raise TypeError(msg)
        if not self.media_type:
            from dagster_dataops.datasets.file_values.media_types import type_of_content

            kind = type_of_content(self.data) or "application/octet-stream"
            object.__setattr__(self, "media_type", kind)
        if not MADE:
            MADE.append(True)
