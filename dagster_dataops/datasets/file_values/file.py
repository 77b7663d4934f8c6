"""`File`: the bytes of a file that an operator returns."""

from dataclasses import dataclass, field

from dagster_dataops.datasets.file_values.media_types import type_of_content


@dataclass(frozen=True)
class File:
    """A file that an operator returns in a field; its record holds a reference to it.

    The file is stored once by its content, as ``files/ab/cdef...`` below the root of the results,
    before the record counts as finished.

        def thumbnail(record):
            record["thumbnail"] = File(shrunk(record["file"]), "image/png")
            return record

    Attributes:
        data: The content.
        media_type: The media type; by default the one that the content shows, else
            ``application/octet-stream``.
    """

    data: bytes = field(repr=False)
    media_type: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes):
            msg = f"File needs bytes, got {type(self.data).__name__}"
            raise TypeError(msg)
        if not self.media_type:
            kind = type_of_content(self.data) or "application/octet-stream"
            object.__setattr__(self, "media_type", kind)
