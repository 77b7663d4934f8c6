"""Inputs on object stores: copied by ranges to the scratch folder, once for each version."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from dagster_dataops.byte_ranges import FileState
from dagster_dataops.configuration import INPUTS, bucket_of, config, root_setting
from dagster_dataops.datasets.durable_files import write_durably
from dagster_dataops.datasets.fetched_file import fetch
from dagster_dataops.datasets.formats import check_json_lines
from dagster_dataops.datasets.open_stores import store_of
from dagster_dataops.errors import ConfigurationError, InputError, ResultMissingError

if TYPE_CHECKING:
    from dagster_dataops.datasets.result_store import Version

NOTE_ENDING: Final = ".version"  # of the file that names the version of a copy


def fetched_input(url: str) -> tuple[Path, int, None, str, FileState]:
    """Return path, size, digest and state of the copy of a jsonl file; its rows are unknown.

    Raises:
        InputError: The file does not exist, is not JSON Lines, or is at no object store.
        StoreRefusedError: The store cannot be reached.
    """
    try:
        given = root_setting("input", url, config.storage_options)
    except ConfigurationError:
        reason = "is a URL of no object store; read it as a stream: use read_jsonl(url) instead"
        raise InputError(url, reason) from None
    found, bucket = store_of(given, read_only=True), bucket_of(given)
    if found is None or bucket is None:
        raise InputError(url, "is the URL of no object store")
    store, key = found
    status = store.status(key)
    if status is None:
        raise InputError(url, "there is no such object")
    copy = bucket[0].folder / INPUTS / key
    digest = _known(copy, status.version)
    if not digest:
        try:
            digest = fetch(store, key, copy)
        except ResultMissingError as error:
            raise InputError(url, error.reason) from None
        check_json_lines(copy)
        note = [list(status.version), list(FileState.at(copy)), digest]
        write_durably(_note_of(copy), orjson.dumps(note))
    return copy, status.size, None, digest, FileState.at(copy)


def _known(copy: Path, version: "Version") -> str:
    """Return the digest of a copy that is of ``version`` and was not changed; else empty."""
    with suppress(OSError, ValueError, TypeError):
        of, state, digest = orjson.loads(_note_of(copy).read_bytes())
        if of == list(version) and state == list(FileState.at(copy)):
            _note_of(copy).touch()  # it was used, see `working_copies`
            return str(digest)
    return ""


def _note_of(copy: Path) -> Path:
    return copy.with_name(f".{copy.name}{NOTE_ENDING}")
