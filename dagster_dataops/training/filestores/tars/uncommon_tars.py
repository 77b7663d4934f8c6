"""Read archives that have sparse files, links or unusual extensions, by Python's tarfile."""

import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.files.contents import Content, ContentFile
from dagster_dataops.training.filestores.sample_names import split_name
from dagster_dataops.training.filestores.tars.tar_headers import BLOCK, damaged, torn
from dagster_dataops.training.filestores.tars.tar_samples import (
    CutSamples,
    OpenSample,
    ShardIdentity,
)

_MAX_SPARSE: Final = 4 << 30  # bytes of a sparse file


class _SeekableFile(ContentFile):
    """A file over a content that can be read at any position."""

    @override
    def seekable(self) -> bool:
        return True

    @override
    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (self._at if whence == io.SEEK_CUR else 0)
        return self._at


class Entry(NamedTuple):
    """A regular file of an archive, or a link to one."""

    key: str
    part: str
    name: str
    begin: int
    data: bytes


@contextmanager
def _named_errors(path: str, at: int = 0) -> Iterator[None]:
    try:
        yield
    except StreamSourceError:
        raise
    except Exception as error:  # tarfile raises exceptions of many types for damaged archives
        raise damaged(path, at, f"{type(error).__name__}: {error}") from error


def entries(path: str, content: Content) -> Iterator[Entry]:
    """Yield the files of an archive that belong to samples.

    Raises:
        StreamSourceError: The archive is torn or damaged, or a link leads nowhere.
    """
    file: Any = io.BufferedReader(_SeekableFile(content), 1 << 16)
    with _named_errors(path), tarfile.open(fileobj=file, mode="r:", encoding="utf-8") as archive:
        for member in archive:
            divided = split_name(member.name)
            if divided is None or not (member.isreg() or member.islnk() or member.issym()):
                continue
            if member.size > _MAX_SPARSE and member.issparse():
                raise damaged(path, member.offset, f"a sparse file of {member.size:,} bytes")
            yield Entry(*divided, member.name, member.offset, _data(path, archive, member))
        end = content.read_at(BLOCK, archive.offset)
        if len(end) < BLOCK or end.count(0) < BLOCK:
            raise torn(path, archive.offset)


def _data(path: str, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    with _named_errors(path, member.offset):
        file = archive.extractfile(member)
        if file is None:
            raise damaged(path, member.offset, f"{member.name!r} links to no file")
        return file.read()


def cut_with_tarfile(
    identity: ShardIdentity, content: Content, begin: int, first: int
) -> Iterator[CutSamples]:
    """Yield each sample from byte ``begin`` on; see `SampleCutter.cut`."""
    opened: OpenSample | None = None
    start = begin
    for key, part, name, at, data in entries(identity.path, content):
        if at < begin:
            continue
        if opened is None or opened[0]["__key__"] != key:
            if opened is not None:
                yield CutSamples([opened[0]], [start, at], is_last=False)
                first += 1
            opened, start = identity.sample(key, first), at
        identity.add(opened, part, name, data)
    if opened is not None:
        yield CutSamples([opened[0]], [start, start + 1], is_last=True)
