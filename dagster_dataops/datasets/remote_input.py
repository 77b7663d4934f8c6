"""Inputs on object stores: read by ranges where they lie, or copied to this machine on request."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from dagster_dataops.configuration import config, input_object
from dagster_dataops.datasets.durable_files import write_durably
from dagster_dataops.datasets.fetched_file import fetch
from dagster_dataops.datasets.published_files import is_result, node_of, result_name
from dagster_dataops.errors import ConfigurationError, InputError, ResultMissingError
from dagster_dataops.foundation.hashing.file_digests import content_digest
from dagster_dataops.foundation.places.bucket import BucketFile, Location
from dagster_dataops.foundation.places.object_file import ObjectFile
from dagster_dataops.foundation.places.opening import FORMS, is_compressed, state_at

NOTE_ENDING: Final = ".version"  # of the file that names the version of a copy


def object_of(url: str) -> BucketFile:
    """Return the object on an object store that a URL names."""
    try:
        return input_object(url, config.storage_options)
    except ConfigurationError:
        reason = "is a URL of no object store; read it as a stream: use read_jsonl(url) instead"
        raise InputError(url, reason) from None


def input_location(facts: Mapping[str, Any]) -> Location:
    """Return where an input is, from the facts about it in a manifest.

    Of a result that has been published in another form since, it is the present file.
    """
    return object_of(facts["url"]) if "url" in facts else _present(Path(facts["path"]))


def _present(path: Path) -> Path:
    if not is_result(path.name) or path.exists():
        return path
    others = (path.with_name(result_name(node_of(path.name), form)) for form in FORMS)
    return next((other for other in others if other.exists()), path)


def fetched(file: BucketFile, fingerprint: str | None) -> tuple[Path, str]:
    """Return the path of a copy of an object, and its digest.

    It is made unless an earlier copy is of the same version.

    Args:
        file: The object.
        fingerprint: The identity that the object must have; ``None`` for any. A digest is compared
            with that of the copy.

    Raises:
        InputError: There is no such object, or it was replaced meanwhile.
        StorageError: It cannot be read.
    """
    copy, remote = file.copy, ObjectFile(file)
    is_digest = fingerprint is not None and not fingerprint.startswith("etag:")
    if not is_digest and fingerprint not in {None, remote.fingerprint}:
        raise InputError(str(file), "was replaced in the store meanwhile; run again")
    digest = _known(copy, remote.fingerprint)
    if not digest:
        try:
            digest = fetch(remote.store, remote.key, copy, remote.version)
        except ResultMissingError as error:
            raise InputError(str(file), error.reason) from None
        if is_compressed(copy.name):
            digest = content_digest(copy)  # of its text
    if is_digest and digest != fingerprint:
        raise InputError(str(file), "has other bytes than were published; make it again")
    write_durably(_note_of(copy), orjson.dumps([remote.fingerprint, list(state_at(copy)), digest]))
    return copy, digest


def _known(copy: Path, version: str | None) -> str:
    """Return the digest of a copy that is of ``version`` and was not changed; else empty."""
    with suppress(OSError, ValueError, TypeError):
        of, state, digest = orjson.loads(_note_of(copy).read_bytes())
        if of == version and state == list(state_at(copy)):
            return str(digest)
    return ""


def _note_of(copy: Path) -> Path:
    return copy.with_name(f".{copy.name}{NOTE_ENDING}")
