"""``read_files``: read whole files, or name them, as records."""

import base64
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from dagster_dataops.datasets.file_values.reference import FileReference, identified
from dagster_dataops.errors import FileError, StreamDefinitionError, StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.file_sets import INFER, FileSet, GivenPaths
from dagster_dataops.streams.files.file_stages import FileCursor, FileStage
from dagster_dataops.streams.files.remote import is_url
from dagster_dataops.streams.files.text_lines import known_encoding, split_mark

_CONTENTS: Final = ("text", "base64", "reference")


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
            self.counter.handle(self.location.path, error)
            return
        self._read = 1
        yield iter((record,))

    def _record(self) -> dict[str, Any]:
        path, stage = self.location.path, self.stage
        if stage.by_reference:
            return {"file": self._reference().to_json()}
        with self.location.opened() as content:
            data = self._content(content)
        record: dict[str, Any] = {"path": path}
        if stage.binary:
            record["base64"] = base64.b64encode(data).decode()
        else:
            encoding, mark = split_mark(stage.encoding, data)
            try:
                record["text"] = data[len(mark) :].decode(encoding)
            except UnicodeDecodeError as error:
                reason = f"is not {stage.encoding} text: {error}; binary=True reads any file"
                raise StreamSourceError(path, reason) from error
        return {**record, "size": len(data)}

    def _reference(self) -> FileReference:
        """Return the reference to the file, with its size, type, and version or digest."""
        path, stage = self.location.path, self.stage
        _check_confined(path, stage.files.paths)
        try:
            reference = identified(path, digest=stage.digest, options=self.location.storage_options)
        except FileError as error:
            raise StreamSourceError(path, f"{error.found}; {error.remedy}") from error
        most = stage.max_bytes
        if most is not None and reference.size is not None and reference.size > most:
            raise StreamSourceError(path, f"has more than max_bytes={most:,} bytes")
        return reference

    def _content(self, content: Content) -> bytes:
        most = self.stage.max_bytes
        if most is None:
            return content.read_all()
        data = content.read_all(most + 1)
        if len(data) > most:
            reason = f"has more than max_bytes={most:,} bytes"
            raise StreamSourceError(self.location.path, reason)
        return data


@dataclass(eq=False)
class WholeFiles(FileStage):
    """Yield one record for each file."""

    name: ClassVar[str] = "read_files"
    file_cursor: ClassVar[type[FileCursor]] = WholeFileCursor
    added_later: ClassVar[frozenset[str]] = frozenset({"by_reference", "digest"})
    encoding: str
    binary: bool
    max_bytes: int | None
    by_reference: bool = False
    digest: bool = False

    @override
    def identity(self) -> object:
        return self.files.identity(some=True)  # a file that cannot be read is a failed item


def _check_confined(path: str, paths: Sequence[str]) -> None:
    """Check that a local file is in the folder that was given, also behind links.

    A file that was given itself may be a link to anywhere.
    """
    if is_url(path) or path in paths:
        return
    real = os.path.realpath(path)
    folders = [
        re.split(r"[*?\[]", pattern, maxsplit=1)[0] for pattern in paths if not is_url(pattern)
    ]
    tops = [folder if os.path.isdir(folder) else os.path.dirname(folder) for folder in folders]  # noqa: PTH112, PTH120 - texts
    inside = [top for top in tops if path.startswith(top)]
    if not any(Path(real).is_relative_to(os.path.realpath(top)) for top in inside):
        reason = f"is a link out of its folder, to {real}; copy the file, or name it by itself"
        raise StreamSourceError(path, reason)


def read_files(  # noqa: PLR0913 - the options of files
    path: GivenPaths,
    pattern: str | None = None,
    *,
    encoding: str | None = None,
    binary: bool = False,
    content: Literal["text", "base64", "reference"] | None = None,
    digest: bool = False,
    max_bytes: int | None = None,
    compression: str | None = INFER,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    """Read whole files as records: ``{"path", "text", "size"}``, with the size in bytes.

    With ``content="reference"`` records name the files instead: ``{"file": {"file", "size",
    "media_type", "version"}}``, see `FileReference`. They are small, and operators read the files
    where they need them. A file that is replaced is noticed by its version. A link that leads out
    of the folder is refused.

    A file that is missing, unreadable, too long or not text, or a link that is refused, is a failed
    item: it ends the stream, and the stream's ``on_error`` can skip it or write it to a file with
    path and reason.

    Args:
        path: A folder, a list of files or a pattern, also as URLs; see `read_jsonl`.
        pattern: The files to keep, such as ``*.md``. It is matched against the whole path, and
            ``*`` also matches slashes.
        encoding: The encoding; UTF-8 if ``None``. A byte order mark is removed.
        binary: The same as ``content="base64"``.
        content: What records hold of a file: its ``text``, which is the default, its bytes as
            ``base64`` text, or a ``reference``.
        digest: Whether references tell the digest of the file, for which it is read, instead of
            its version.
        max_bytes: The maximum size of a file; no limit if ``None``.
        compression: See `read_jsonl`; ``None`` reads compressed files as they are.
        storage_options: See `read_jsonl`.

    Raises:
        StreamDefinitionError: An argument is invalid.
    """
    if max_bytes is not None and max_bytes < 0:
        raise StreamDefinitionError("read_files", f"max_bytes is {max_bytes}; at least 0 is needed")
    if content not in {None, *_CONTENTS} or (binary and content not in {None, "base64"}):
        reason = f"content is {content!r}; give one of {', '.join(_CONTENTS)}, without binary"
        raise StreamDefinitionError("read_files", reason)
    if digest and content != "reference":
        raise StreamDefinitionError("read_files", "digest=True needs content='reference'")
    if content == "reference":  # of the file as it is
        compression = None
    files = FileSet.of("read_files", path, compression, storage_options)
    stage = WholeFiles(
        replace(files, pattern=pattern),
        known_encoding(encoding, "read_files"),
        binary or content == "base64",
        max_bytes,
        content == "reference",
        digest,
    )
    return DataPipelineBuilder(stage)
