"""Keep what this version cannot read: checkpoints and a published result.

A run refuses what a newer version has written, and touches nothing. What has another format that
cannot be read (of a version before 0.2.0, or of a machine with another order of bytes) is moved to
a folder of the node before a result is published, so that nothing is lost. The same is done with a
result whose manifest is damaged. In a bucket it is uploaded, see `BucketClaim`. A user deletes that
folder.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson

from dagster_dataops.checkpoints.checkpoint import CheckpointContent, existing, folders
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder, unreadable
from dagster_dataops.checkpoints.journal.frames import FORMAT, MAGIC
from dagster_dataops.checkpoints.journal.journal_reader import (
    PARTS_MARK,
    check_not_newer,
    format_at_start,
    format_of,
    is_read,
    without_mark,
)
from dagster_dataops.datasets.durable_files import draft_of, make_folder, storage
from dagster_dataops.datasets.published_files import HISTORY, JOURNAL
from dagster_dataops.foundation.places.bucket import LocalFile
from dagster_dataops.foundation.places.opening import FORMS

_NAME_LENGTH: Final = 80  # of a format in the name of a folder


def notes_on(
    folder: NodeFolder, contents: Sequence[CheckpointContent], *, keeps: bool
) -> Iterator[str]:
    """Yield a line for the log about each thing that cannot be read.

    Args:
        folder: Of the node.
        contents: Of its checkpoints.
        keeps: Whether the run keeps versions of the result, and removes some.

    Raises:
        NewerVersionError: One is of a newer version.
    """
    unread = _check_none_newer(folder, contents, keeps=keeps)
    for content in contents:
        if not content.foreign:
            if not content.attempts and not content.table.records and content.segments.names():
                yield (
                    f"the journal of the checkpoint {content.folder} is damaged or empty, so that "
                    "the outcomes in its other files are not used; they are kept until this run's "
                    "result is published"
                )
            continue
        runs = f" of run {content.attempts[-1]}" if content.attempts else ""
        yield _note(f"the checkpoint {content.folder}{runs}", content.format, folder)
    for part, format_ in unread:
        if format_:
            yield _note(f"the published result {part.located(part.result)}", format_, folder)
        else:
            place = folder.located(_place(folder, ""))
            yield (
                f"the manifest {part.located(part.manifest)} is damaged, so that its result is not "
                f"used. The files that are there are kept in {place} when this run's result is "
                "published; delete that folder when you do not need them"
            )


def refuse_newer(folder: NodeFolder, *, keeps: bool = False) -> None:
    """Check that nothing in the folder of a node is of a newer version.

    Args:
        folder: Of the node.
        keeps: As for `notes_on`.

    Raises:
        NewerVersionError: A result, one that was being published, a version of it or a checkpoint
            is.
    """
    unreadable(draft_of(folder.manifest))
    _check_none_newer(folder, existing(folder.checkpoints), keeps=keeps)


def check_format(data: bytes, file: LocalFile) -> None:
    """Check that a file that notes its format is not of a newer version.

    Args:
        data: The content of a manifest, of the head of a node in a bucket, of a journal, or of an
            entry of the journal of a node in a bucket.
        file: The file.

    Raises:
        NewerVersionError: It is.
    """
    _, _, rest = data.partition(b"\n")
    frames = next((each for each in (data, rest) if each.startswith(MAGIC[:3])), b"")
    if frames:
        check_not_newer(format_at_start(frames), file)
        return
    with suppress(orjson.JSONDecodeError):
        data = orjson.dumps(without_mark(orjson.loads(data), PARTS_MARK))
    Manifest.parse(data, file)


def _check_none_newer(
    folder: NodeFolder, contents: Iterable[CheckpointContent], *, keeps: bool
) -> list[tuple[NodeFolder, str]]:
    """Check that no result, version or checkpoint is newer; return the results that are not read.

    Raises:
        NewerVersionError: One is newer.
    """
    for content in contents:
        check_not_newer(content.format, folder.located(content.folder))
    if keeps or (folder.path / HISTORY).exists():
        from dagster_dataops.checkpoints.versions.node_versions import check_versions  # rare

        check_versions(folder)
    return _unreadable(folder)


def _unreadable(folder: NodeFolder) -> list[tuple[NodeFolder, str]]:
    """Return the folder of the node if its manifest is not read, else those of such outputs."""
    parts = [folder, *folder.outputs.values()]
    formats = [unreadable(part.located(part.manifest)) for part in parts]
    unread = [
        (part, format_) for part, format_ in zip(parts, formats, strict=True) if format_ is not None
    ]
    return unread[:1] if formats[0] is not None else unread


def _note(what: str, format_: str, folder: NodeFolder) -> str:
    place = folder.located(_place(folder, format_))
    return (
        f"{what} has format {format_}; this version reads {FORMAT}, and does not use it. It is "
        f"kept in {place} when this run's result is published; delete that folder when no other "
        "version needs it"
    )


def keep_other_versions(folder: NodeFolder) -> None:
    """Move checkpoints of other versions out of the way, and link a result of one.

    Call it before the publication begins; safe to do twice.

    Raises:
        StorageError: The disk refuses.
    """
    with storage(folder.path, "keep what another version has written"):
        for checkpoint in folders(folder.checkpoints):
            format_ = format_of(checkpoint / JOURNAL)
            if format_ and not is_read(format_):
                place = _made(folder, format_)
                checkpoint.rename(_free(place / f"checkpoint-{checkpoint.name}"))
        for format_ in {format_ for _, format_ in _unreadable(folder)}:
            _link_result(folder, _made(folder, format_))


def _link_result(folder: NodeFolder, place: Path) -> None:
    """Give the files of a result a second name; those of an earlier result are replaced."""
    files = {
        "error.jsonl": folder.errors,
        "kept": folder.kept,
        "manifest.json": folder.manifest,
        **{f"{name}.manifest.json": each.manifest for name, each in folder.outputs.items()},
    }
    for form in FORMS:
        here = folder.in_form(form)
        outputs = {name: output.result for name, output in here.outputs.items()}
        results = {"result": here.result, **outputs}
        files |= {f"{name}.{form}": result for name, result in results.items()}
    for name, path in files.items():
        kept = place / name
        if kept.is_dir():
            shutil.rmtree(kept)
        kept.unlink(missing_ok=True)
        if path.is_dir():  # a result in parts
            shutil.copytree(path, kept, copy_function=_link)
        elif path.exists():
            _link(path, kept)


def _link(path: str | Path, kept: str | Path) -> None:
    try:
        os.link(path, kept)
    except OSError:  # a file system without links
        shutil.copy2(path, kept)


def _place(folder: NodeFolder, format_: str) -> Path:
    """Return the folder for what has a format, or for what is damaged if it is empty."""
    if not format_:
        return folder.other_versions / "damaged"
    name = re.sub(r"[^0-9A-Za-z-]+", "_", format_)[:_NAME_LENGTH]
    return folder.other_versions / f"format-{name}"


def _made(folder: NodeFolder, format_: str) -> Path:
    place = _place(folder, format_)
    make_folder(place)
    return place


def _free(path: Path) -> Path:
    number, free = 1, path
    while os.path.lexists(free):
        number += 1
        free = path.with_name(f"{path.name}.{number}")
    return free
