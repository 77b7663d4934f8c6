"""``read_zipped_records``: the files in zip archives as texts."""

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dagster_dataops.errors import DamagedFileError, StreamDefinitionError, StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.files.blocks import LINE_BYTES, TOO_LONG
from dagster_dataops.streams.files.descriptors import naming_path
from dagster_dataops.streams.files.file_sets import FileSet, GivenPaths
from dagster_dataops.streams.files.file_stages import FileCursor, FileStage
from dagster_dataops.streams.files.remote import is_url
from dagster_dataops.streams.files.text_lines import known_encoding

_NAME: Final = "read_zipped_records"


class ZipCursor(FileCursor):
    """Read the entries of one archive, without folders. The number of read entries is saved."""

    saved: ClassVar[tuple[str, ...]] = ("_next", "failed")

    @override
    def reset(self) -> None:
        self._next = 0

    @override
    def blocks(self) -> Iterator[Iterator[Any]]:
        path = self.location.path
        try:
            with naming_path(path):
                archive = zipfile.ZipFile(path)
        except StreamSourceError:
            raise
        except Exception as error:  # zipfile raises many kinds for damaged files
            raise DamagedFileError(path, f"cannot be read as a zip archive: {error}") from error
        with archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            for entry in entries[self._next :]:
                self._next += 1
                try:
                    content = self._content(archive, entry)
                except Exception as error:  # noqa: BLE001 - many kinds, as above
                    place = f"{path}, entry {entry.filename!r}"
                    failure = StreamSourceError(place, f"cannot be read: {error}")
                    failure.__cause__ = error
                    self.counter.handle(place, failure)
                    continue
                yield iter((content,))

    def _content(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Any:
        if entry.file_size > LINE_BYTES:
            raise ValueError(TOO_LONG)
        data = archive.read(entry)
        return data if self.stage.encoding is None else data.decode(self.stage.encoding)


@dataclass(eq=False)
class ZippedRecords(FileStage):
    """Yield the content of each entry of zip archives."""

    name: ClassVar[str] = _NAME
    file_cursor: ClassVar[type[FileCursor]] = ZipCursor
    encoding: str | None


def read_zipped_records(path: GivenPaths, *, encoding: str | None = "utf-8") -> DataPipelineBuilder:
    """Read the files in zip archives: one text for each, in the order of the archive.

    Resuming reads no entry again. A file that cannot be read is a failed item, which the stream's
    ``on_error`` can skip.

    Args:
        path: A local archive, a list of archives, a folder or a pattern; see `read_jsonl`.
        encoding: The encoding of the texts; ``None`` yields bytes.

    Raises:
        StreamDefinitionError: An archive is a URL, or the encoding is unknown.

    Example:
        >>> import zipfile
        >>> with zipfile.ZipFile("texts.zip", "w") as archive:
        ...     archive.writestr("a.txt", "first")
        >>> list(read_zipped_records("texts.zip"))
        ['first']
    """
    files = FileSet.of(_NAME, path, None)
    url = next((path for path in files.paths if is_url(path)), None)
    if url is not None:
        reason = (
            f"{url} is a URL; read_text and read_jsonl read the files of remote archives, such as "
            "zip://*.txt::https://…/all.zip"
        )
        raise StreamDefinitionError(_NAME, reason)
    chosen = None if encoding is None else known_encoding(encoding, _NAME)
    return DataPipelineBuilder(ZippedRecords(files, chosen))
