"""``shape.AddFileFacts``: references that tell which content they name."""

from typing import Any

from dagster_dataops.library.file_column import FileColumn
from dagster_dataops.library.shape.columns import shape
from dagster_dataops.records import Record


class AddFileFacts(shape):
    """Write the size, media type and version or digest of files into their references.

    Reads the path, URL or reference in ``input_key="file"`` and writes the reference with the facts
    to ``output_key=None``, by default in its place. Later nodes notice a replaced file by them, and
    their results and outcomes can be used again: a plain path does not tell which content it named.
    Without a digest the beginning of a file is read; with ``digest=True`` the whole file, and the
    reference stays right where times change, such as after a copy. Facts that a reference tells
    already are compared with the file; another file is an error of the record.

    Source: own; Data-Juicer and Curator have no such operator.

    Args:
        input_key: Key of the file: a column, or a selector of one element.
        output_key: Column of the reference; ``None`` for ``input_key``.
        digest: Whether files are read for their SHA-256 digest; else references have the version:
            the time of modification, or what the server tells.
    """

    def __init__(
        self,
        *,
        input_key: str = "file",
        output_key: str | None = None,
        digest: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column, self._output_key = FileColumn(input_key, ""), output_key
        self._digest = digest

    def forward(self, record: Record) -> Record:
        reference = self._column.reference(record).with_facts(digest=self._digest)
        return self._column.written(record, reference.to_json(), self._output_key)
