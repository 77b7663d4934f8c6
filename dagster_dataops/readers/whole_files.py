"""``read_files``: read whole files as records."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.errors import StreamDefinitionError, StreamSourceError
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.file_sets import INFER, FileSet, GivenPaths
from dagster_dataops.streams.files.file_stages import FileCursor, FileStage
from dagster_dataops.streams.files.text_lines import known_encoding, split_mark


class WholeFileCursor(FileCursor):
    """Read one file. The state tells whether it was read."""

    saved: ClassVar[tuple[str, ...]] = ("_read", "failed")

    @override
    def reset(self) -> None:
        self._read = 0

    @override
    def blocks(self) -> Iterator[Iterator[Any]]:
        if self._read:
            return
        try:
            record = self._record()
        except StreamSourceError as error:
            self.counter.settle(self.location.path, error)
            return
        self._read = 1
        yield iter((record,))

    def _record(self) -> dict[str, Any]:
        path, stage = self.location.path, self.stage
        with self.location.opened() as content:
            found = self._content(content)
        made: dict[str, Any] = {"path": path}
        if stage.binary:
            made["base64"] = base64.b64encode(found).decode()
        else:
            encoding, mark = split_mark(stage.encoding, found)
            try:
                made["text"] = found[len(mark) :].decode(encoding)
            except UnicodeDecodeError as error:
                reason = f"is not {stage.encoding} text: {error}; binary=True reads any file"
                raise StreamSourceError(path, reason) from error
        return {**made, "size": len(found)}

    def _content(self, content: Content) -> bytes:
        most = self.stage.max_bytes
        if most is None:
            return content.read_all()
        found = content.read_all(most + 1)
        if len(found) > most:
            reason = f"has more than max_bytes={most:,} bytes"
            raise StreamSourceError(self.location.path, reason)
        return found


@dataclass(eq=False)
class WholeFiles(FileStage):
    """Yield one record for each file."""

    name: ClassVar[str] = "read_files"
    file_cursor: ClassVar[type[FileCursor]] = WholeFileCursor
    encoding: str
    binary: bool
    max_bytes: int | None


def read_files(  # noqa: PLR0913 - the options of files
    path: GivenPaths,
    pattern: str | None = None,
    *,
    encoding: str | None = None,
    binary: bool = False,
    max_bytes: int | None = None,
    compression: str | None = INFER,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    """Read whole files as records: ``{"path", "text", "size"}``, with the size in bytes.

    A file that is unreadable, too long or not text is a failed item, which the stream's
    ``on_error`` can skip.

    Args:
        path: A folder, a list of files or a pattern, also as URLs; see `read_jsonl`.
        pattern: The files to keep, such as ``*.md``. It is matched against the whole path, and
            ``*`` also matches slashes.
        encoding: The encoding; UTF-8 if ``None``. A byte order mark is removed.
        binary: Whether records hold the content as base64 text in ``base64`` instead of ``text``.
        max_bytes: The maximum size of a file; no limit if ``None``.
        compression: See `read_jsonl`; ``None`` reads compressed files as they are.
        storage_options: See `read_jsonl`.

    Raises:
        StreamDefinitionError: An argument is invalid.
    """
    if max_bytes is not None and max_bytes < 0:
        raise StreamDefinitionError("read_files", f"max_bytes is {max_bytes}; at least 0 is needed")
    files = FileSet.of("read_files", path, compression, storage_options)
    stage = WholeFiles(
        replace(files, pattern=pattern),
        known_encoding(encoding, "read_files"),
        binary,
        max_bytes,
    )
    return DataPipelineBuilder(stage)
