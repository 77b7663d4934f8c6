"""`JsonlDataset`: a handle of one jsonl file, cheap to pass around because it holds no records."""

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dagster_dataops.datasets.formats import check_json_lines
from dagster_dataops.datasets.lines import (
    LineCounter,
    interval_of,
    iterate_lines,
    opened_content,
)
from dagster_dataops.errors import InputError
from dagster_dataops.foundation.hashing.file_digests import cached_digest, content_digest
from dagster_dataops.foundation.parts import NotebookHtml
from dagster_dataops.foundation.places.bucket import BucketFile, CopiedFile, Location, local_path
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.opening import open_readable, opened, state_at
from dagster_dataops.foundation.places.range_source import size_of
from dagster_dataops.foundation.places.url_forms import is_url
from dagster_dataops.records import Record, decode, decode_own

if TYPE_CHECKING:
    from dagster_dataops.streams.data_pipeline import DataPipelineBuilder

CHANGED: Final = "changed while it was being processed; run again when no program writes to it"


@dataclass(frozen=True, slots=True)
class JsonlDataset:
    """Records in a fixed order, one JSON object per line.

    Attributes:
        location: The absolute path of the file, the object in a bucket, or a `CopiedFile`: the copy
            on this machine of a result in a bucket.
        size_bytes: The size of the lines; that of the file, unless it is compressed.
        rows: The number of records; ``None`` if the file was written elsewhere and not counted.
        fingerprint: The digest of the lines, ``xxh3:...``; ``None`` if it was not computed. Of an
            object on a store its entity tag, ``etag:...``. A compressed file has that of its text.
        state: The state of the file when it had these bytes; ``None`` if unknown. If the file is in
            another state, it is read again to compare its content with ``fingerprint``.
    """

    location: Location
    size_bytes: int
    rows: int | None = None
    fingerprint: str | None = None
    state: FileState | None = field(default=None, compare=False, repr=False)

    _repr_html_ = NotebookHtml()

    @classmethod
    def of_file(cls, path: str | os.PathLike[str]) -> "JsonlDataset":
        """Return a handle of an existing file. Only the first lines of the file are read.

        A file on an object store, such as ``s3://bucket/docs.jsonl``, is read there, by ranges, by
        the processes that need them.

        Raises:
            InputError: The file does not exist, is not a regular file, or is not JSON Lines; or the
                URL is not that of an object store.
            StoreRefusedError: The store cannot be reached.
        """
        if is_url(path):
            from dagster_dataops.datasets.remote_input import object_of  # threads

            return cls._of_object(object_of(str(path)))
        try:
            absolute = Path(path).expanduser().absolute()
        except RuntimeError as error:  # ~name of an unknown user
            raise InputError(str(path), str(error)) from None
        with opened_content(absolute) as (source, interval):
            check_json_lines(absolute, source)
        return cls(absolute, size_bytes=interval.end)

    @classmethod
    def at(cls, location: Location) -> "JsonlDataset":
        """Return a handle of an existing file of this machine, or of an object; as `of_file`."""
        if isinstance(location, BucketFile):
            return cls._of_object(location)
        return replace(cls.of_file(location), location=location)

    @classmethod
    def _of_object(cls, file: BucketFile) -> "JsonlDataset":
        remote = open_readable(file)
        if isinstance(remote, int):  # it never is, of an object
            raise InputError(str(file), "is no object")
        interval_of(remote, file)
        check_json_lines(file, remote)
        dataset = cls(file, remote.size, fingerprint=remote.fingerprint, state=remote.state())
        in_memory = file.bucket.url.startswith("memory:")  # only this process has it
        return dataset.download() if in_memory else dataset

    @property
    def path(self) -> Path:
        """The absolute path of the file.

        Raises:
            InputError: It is an object on a store, which has no path; `download` makes a file.
        """
        if (path := local_path(self.location)) is None:
            reason = (
                "is an object on a store and no file of this machine, so it has no path; iterate "
                "over the dataset, or use its download() to get a dataset with a path"
            )
            raise InputError(str(self.location), reason)
        return path

    def download(self) -> "JsonlDataset":
        """Copy an object on a store to this machine, and return the copy; return a file as it is.

        Raises:
            InputError: There is no such object, or it was replaced.
            StorageError: It cannot be read.
        """
        if not isinstance(self.location, BucketFile):
            return self
        from dagster_dataops.datasets.remote_input import fetched  # threads

        self.check_content()
        path, digest = fetched(self.location, self.fingerprint)
        state = state_at(path)
        copy = CopiedFile(self.location.bucket, path)
        return replace(self, location=copy, fingerprint=digest, state=state)

    @property
    def identity(self) -> str:
        """The identity of the content: the digest, or values from the file system.

        Without a digest it is made of size, modification time, change time and inode. Programs
        cannot set the change time, so a rewritten file always has another identity. Where the file
        system counts whole seconds, it is the digest.

        Raises:
            InputError: The file cannot be read, or its content does not match the digest.
        """
        if self.fingerprint is None:
            now = self.stamp()
            if now.coarse:
                return cached_digest(self.location, now)
            return f"stat:{now.size}:{now.modified_ns}:{now.changed_ns}:{now.inode}"
        self.check_content()
        return self.fingerprint

    def check_content(self) -> None:
        """Check that the file has the content of the digest, if there is one.

        The file is not read if its state is the recorded one, and tells contents apart.

        Raises:
            InputError: The content is different, or the file cannot be read.
        """
        now = self.stamp()
        if self.fingerprint is None or (now == self.state and not now.coarse):
            return
        size = self._present_size()
        problem = f"{size:,} bytes, not the {self.size_bytes:,}"
        if size == self.size_bytes:
            if cached_digest(self.location, now) == self.fingerprint:
                return
            problem = "other content than"
        reason = (
            f"was changed after its handle was made: it has {problem} it was written with; run the "
            "step that writes it again, or use JsonlDataset.of_file(path) for the present content"
        )
        raise InputError(str(self.location), reason)

    def _present_size(self) -> int:
        """Return the size of the lines that the file has now; of a compressed one, of its text."""
        try:
            with opened(self.location) as source:
                interval_of(source, self.location)  # a compressed one may have been cut off
                return size_of(source)
        except OSError as error:
            raise InputError(str(self.location), f"cannot be read: {error.strerror}") from error

    def stamp(self) -> FileState:
        """Return the present state of the file. Another state may mean another content.

        Raises:
            InputError: The file cannot be read.
        """
        try:
            return state_at(self.location)
        except OSError as error:
            raise InputError(str(self.location), f"cannot be read: {error.strerror}") from error

    def check_unchanged(self, since: FileState, read_ns: int = 0) -> None:
        """Check that the content of the file has not changed since `stamp` returned ``since``.

        If only links or permissions may have changed, the digest decides, if it is known. So it
        does if the file system may count too slowly to show a change.

        Args:
            since: The state before the file was read.
            read_ns: The time at that moment, in nanoseconds since 1970; 0 if it does not matter.

        Raises:
            InputError: The content may have changed, or the file cannot be read.
        """
        now = self.stamp()
        if now == since:
            hidden = read_ns and since.coarse and since.hides_changes(read_ns)
            if hidden and self.fingerprint not in {None, content_digest(self.location)}:
                raise InputError(str(self.location), CHANGED)
            return
        if self.fingerprint is None or not now.resembles(since):
            raise InputError(str(self.location), CHANGED)
        self.check_content()

    @property
    def canonical(self) -> bool:
        """Whether this package wrote every line: the rows are known only of its files."""
        return self.fingerprint is not None and self.rows is not None

    def __iter__(self) -> Iterator[Record]:
        """Yield the records in order, decoding one at a time.

        Raises:
            InputError: A line is not a record; the message names file and line.
        """
        read = decode_own if self.canonical else decode
        with opened_content(self.location) as (source, interval):
            for line in iterate_lines(source, [interval]):
                try:
                    yield read(line.text)
                except ValueError as error:
                    number = LineCounter(source).line_at(line.start)
                    place = f"{self.location!s}, line {number}"
                    raise InputError(place, str(error)) from None

    def read(self) -> list[Record]:
        """Return all records."""
        return list(self)

    def head(self, count: int) -> list[Record]:
        """Return the first ``count`` records."""
        return list(itertools.islice(self, count))

    def sample(self, count: int) -> list[Record]:
        """Return the records of the first ``count`` lines; invalid lines are skipped."""
        with opened_content(self.location) as (source, interval):
            lines = list(itertools.islice(iterate_lines(source, [interval]), count))
        records = []
        for line in lines:
            with suppress(ValueError):
                records.append(decode(line.text))
        return records

    def stream(self) -> "DataPipelineBuilder":
        """Return the records as a stream, for further stages or a training loop.

        Its states are refused after the content has changed. ``shuffle(0)`` shuffles all records
        without holding them, and ``shard()`` after it reads only the records of the shard.
        """
        from dagster_dataops.streams.result_stream import read_result  # workers do without streams

        here = self.download()
        return read_result(here.path, here.size_bytes, here.fingerprint, here.state)
