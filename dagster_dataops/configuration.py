"""Settings of plain Python runs, named as LazyLLM names them.

They are read when a run starts, not when an operator is constructed. Precedence: a value assigned
to ``config`` > the environment > the default. Under Dagster, `DataOpsResource` replaces them.
"""

import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from dagster_dataops.errors import ConfigurationError

_DEFAULT_ROOT: Final = "data_pipeline_res"
Resume: TypeAlias = bool | Literal["failed_records", "across_code"]

# One letter is a drive of Windows. pathlib makes one slash of two.
_URL: Final = re.compile(r"([a-z0-9+.-]+::)*[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
_STORE: Final = re.compile(r"(s3|gs|az|abfs|memory):/{1,3}([^/@]+)/*(.*)", re.IGNORECASE)
_OBJECT: Final = re.compile(r"(s3|gs|az|abfs)://[^/@]+/[^*?\[\]]*\.jsonl", re.IGNORECASE)
_VERSION: Final = re.compile(r"(.*)/\.versions/[^/]+/(.+)")  # the key of a published file
INPUTS: Final = ".inputs/"  # in the folder of a bucket: paths that stand for inputs; no files
COPIES: Final = ".copies/"  # beside it: copies of inputs
_NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


class Configuration:
    """The settings; assign an attribute to set it, or ``None`` to use the environment again.

    Attributes:
        data_process_path: Root folder of all results. Environment DATAOPS_DATA_PROCESS_PATH,
            default ``data_pipeline_res`` in the working directory.
        data_process_resume: Whether a call resumes from an unfinished checkpoint and reuses
            finished results of the same operator, options, code and input; "failed_records"
            retries only the failed records of finished results; "across_code" resumes even if the
            operator's code has changed. Environment DATAOPS_DATA_PROCESS_RESUME, default False.
        data_process_progress: Whether to draw progress bars: True, False, or None for "when
            standard error is a terminal". Environment DATAOPS_DATA_PROCESS_PROGRESS.
        data_process_scratch: Folder for working copies of results on object stores. Environment
            DATAOPS_DATA_PROCESS_SCRATCH, default a folder in the temporary folder that only this
            user can write to. A folder that is set here must be one that no other user writes to.
        storage_options: Options of object stores, such as ``endpoint`` and ``access_key_id``, over
            those of the environment.
        clients: Objects that operators get from their context by name, such as clients of model
            servers: ``config.clients["default"] = ...``.
        cluster: Machines that operators in process mode run on, such as ``RayCluster("auto")``;
            ``None`` for this machine.
    """

    # A misspelt setting is an AttributeError.
    __slots__ = ("_assigned", "_clients", "_storage_options")

    def __init__(self) -> None:
        self._assigned: Final[dict[str, object]] = {}
        self._clients: Final[dict[str, object]] = {}
        self._storage_options: Final[dict[str, str]] = {}

    @property
    def clients(self) -> dict[str, object]:
        """Objects that operators get from their context by name."""
        return self._clients

    @property
    def cluster(self) -> Any:
        """Machines that operators in process mode run on; ``None`` for this machine."""
        return self._assigned.get("cluster")

    @cluster.setter
    def cluster(self, value: object) -> None:
        if value is not None and not hasattr(value, "open"):
            raise ConfigurationError("cluster", value, "a cluster, such as RayCluster('auto')")
        self._assigned["cluster"] = value

    @property
    def data_process_path(self) -> Path:
        """Root folder of all results, as an absolute path.

        For a URL of an object store, the folder of the working copy.

        Raises:
            ConfigurationError: No folder can have that path.
        """
        value = self._read("data_process_path")
        scratch = self.data_process_scratch if value and is_url(value) else None
        return root_setting("data_process_path", value, self.storage_options, scratch)

    @data_process_path.setter
    def data_process_path(self, value: str | Path | None) -> None:
        self._assigned["data_process_path"] = value

    @property
    def data_process_scratch(self) -> Path:
        """Folder for working copies of results on object stores, as an absolute path.

        Raises:
            ConfigurationError: The default folder is another user's, or others can write to it; or
                no folder can have the path that was set.
        """
        value = self._read("data_process_scratch")
        return folder_setting("data_process_scratch", value) if value else _default_scratch()

    @data_process_scratch.setter
    def data_process_scratch(self, value: str | Path | None) -> None:
        self._assigned["data_process_scratch"] = value

    @property
    def storage_options(self) -> dict[str, str]:
        """Options of object stores, over those of the environment."""
        return self._storage_options

    @property
    def data_process_resume(self) -> Resume:
        """Whether and how calls resume an earlier run, or that they retry its failed records."""
        value = self._read("data_process_resume")
        match str(value).strip().lower():
            case "failed_records":
                return "failed_records"
            case "across_code":
                return "across_code"
        allowed = "true or false, or failed_records or across_code"
        return self._read_bool("data_process_resume", allowed) or False

    @data_process_resume.setter
    def data_process_resume(self, value: Resume | None) -> None:
        self._assigned["data_process_resume"] = value

    @property
    def data_process_progress(self) -> bool | None:
        """Whether progress bars are drawn; ``None`` draws them if standard error is a terminal."""
        return self._read_bool("data_process_progress")

    @data_process_progress.setter
    def data_process_progress(self, value: bool | None) -> None:
        self._assigned["data_process_progress"] = value

    @contextmanager
    def temporary(self, **values: object) -> Iterator[None]:
        """Assign ``values`` inside a ``with`` block."""
        before = dict(self._assigned)
        try:
            for setting, value in values.items():
                setattr(self, setting, value)
            yield
        finally:
            self._assigned.clear()
            self._assigned.update(before)

    def _read(self, setting: str) -> object:
        assigned = self._assigned.get(setting)
        return os.environ.get(f"DATAOPS_{setting.upper()}") if assigned is None else assigned

    def _read_bool(self, setting: str, allowed: str = "true or false") -> bool | None:
        value = self._read(setting)
        if value is None or isinstance(value, bool):
            return value
        text = str(value).strip().lower()
        if text not in _TRUE | _FALSE:
            raise ConfigurationError(setting, value, allowed)
        return text in _TRUE


def _default_scratch() -> Path:
    from dagster_dataops.private_folders import (  # imports tempfile; only for object stores
        ForeignFolderError,
        private_folder,
    )

    try:
        return private_folder("dagster-dataops")
    except ForeignFolderError as error:
        allowed = f"a folder of this user; {error.strerror}, or set DATAOPS_DATA_PROCESS_SCRATCH"
        raise ConfigurationError("data_process_scratch", error.filename, allowed) from None
    except OSError as error:
        allowed = f"a folder that can be created; {error.strerror}"
        raise ConfigurationError("data_process_scratch", error.filename, allowed) from None


def folder_setting(setting: str, value: object) -> Path:
    """Return the folder that a setting names, as an absolute path.

    Args:
        setting: Name of the setting, for errors.
        value: A path; an empty value is the default.

    Raises:
        ConfigurationError: No folder can have that path, or it is a URL.
    """
    text = str(value) if value else _DEFAULT_ROOT
    check_local(setting, text)
    try:
        text.encode()
        path = Path(text).expanduser().absolute()
    except (UnicodeEncodeError, RuntimeError):  # ~name of an unknown user
        path = None
    if path is None or "\0" in text:
        shown = text.encode(errors="backslashreplace").decode()
        raise ConfigurationError(setting, shown, "the path of a folder, in UTF-8")
    return path


class StoreBucket(NamedTuple):
    """A bucket of an object store.

    Attributes:
        url: Its URL, without a prefix: ``s3://bucket``.
        folder: The folder that holds the working copies of its objects.
        options: Options of the store, over those of the environment.
        reached: Whether another process of the run has reached it.
    """

    url: str
    folder: Path
    options: Mapping[str, str]
    reached: bool = False


_BUCKETS: Final[dict[Path, StoreBucket]] = {}  # by their folders


def root_setting(
    setting: str,
    value: object,
    options: Mapping[str, str] = _NO_OPTIONS,
    scratch: Path | None = None,
) -> Path:
    """Return the folder of all results. For a URL of an object store it is a working copy.

    Args:
        setting: Name of the setting, for errors.
        value: A path or a URL, such as ``s3://bucket/prefix``; an empty value is the default.
        options: Options of the object store.
        scratch: Folder for working copies; by default that of ``config``.

    Raises:
        ConfigurationError: No folder can have that path, or the URL is not that of an object store.
    """
    found = _STORE.fullmatch(str(value)) if value else None
    if found is None:
        return folder_setting(setting, value)
    scheme, name, prefix = found[1].lower(), found[2], found[3].strip("/")
    if any(part in {".", ".."} for part in (name, *prefix.split("/"))):
        raise ConfigurationError(setting, str(value), "a URL without the parts . and ..")
    if "\0" in f"{name}{prefix}":
        raise ConfigurationError(setting, str(value), "a URL without NUL characters")
    place = options.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL", "")
    mark = f"{zlib.crc32(place.encode()):08x}" if place else ""
    folder = (
        (scratch or config.data_process_scratch) / scheme / (f"{name}@{mark}" if mark else name)
    )
    _BUCKETS[folder] = StoreBucket(f"{scheme}://{name}", folder, dict(options))
    return folder / prefix if prefix else folder


def bucket_of(path: Path) -> tuple[StoreBucket, str] | None:
    """Return the bucket whose working copy holds ``path``, and the key of ``path`` in it.

    Returns:
        The bucket and the key; ``None`` for a path that is not in a working copy.
    """
    for folder in (path, *path.parents) if _BUCKETS else ():
        if folder in _BUCKETS:
            key = path.relative_to(folder).as_posix()
            return _BUCKETS[folder], "" if key == "." else key
    return None


def bucket_facts(path: Path) -> tuple[Any, ...]:
    """Return what another process needs to read the object that a path stands for.

    Returns:
        Values that JSON can hold; none for another path.
    """
    found = input_object(path)
    return () if found is None else (found[0].url, str(found[0].folder), dict(found[0].options))


def add_bucket(facts: Sequence[Any]) -> None:
    """Make this process know a bucket, so that a path stands for the same object as elsewhere.

    Args:
        facts: From `bucket_facts`.
    """
    if facts:
        url, folder, options = facts
        _BUCKETS[Path(folder)] = StoreBucket(url, Path(folder), options, reached=True)


def input_object(path: Path) -> tuple[StoreBucket, str] | None:
    """Return the bucket and the key of the object that a path stands for; else ``None``."""
    found = bucket_of(path)
    if found is None or not found[1].startswith(INPUTS):
        return None
    return found[0], found[1].removeprefix(INPUTS)


def input_path(url: str, options: Mapping[str, str]) -> Path:
    """Return the path by which this package names an input on an object store.

    Args:
        url: Its URL, such as ``s3://bucket/docs.jsonl``.
        options: Options of the object store.

    Raises:
        ConfigurationError: It is not the URL of an object on an object store.
    """
    place = root_setting("input", url, options)
    found = bucket_of(place)
    if found is None or not found[1]:
        raise ConfigurationError("input", url, "the URL of an object on an object store")
    return found[0].folder / INPUTS / found[1]


def object_path(path: Path, key: str) -> Path:
    """Return the path that stands for an object of the bucket whose working copy holds ``path``."""
    found = bucket_of(path)
    return path if found is None else found[0].folder / INPUTS / key


def copy_path(path: Path) -> Path:
    """Return the path of the copy of the object that ``path`` stands for."""
    found = input_object(path)
    return path if found is None else found[0].folder / COPIES / found[1]


def known_path(path: Path) -> Path:
    """Return the path of a result in the working copy, for one that stands for its object."""
    found = input_object(path)
    published = None if found is None else _VERSION.fullmatch(found[1])
    return found[0].folder / published[1] / published[2] if found and published else path


def shown_place(path: Path) -> str:
    """Return a path as users know it: the URL of a path in a working copy."""
    known = known_path(path)
    found = bucket_of(known)
    if found is None:
        return str(path)
    return f"{found[0].url}/{found[1].removeprefix(INPUTS).removeprefix(COPIES)}"


def is_url(path: object) -> bool:
    """Whether a path is a URL, such as ``s3://bucket/x``, also as `pathlib` shortens it."""
    return _URL.match(str(path)) is not None


def is_object_url(text: str) -> bool:
    """Whether a text is the URL of one jsonl file on an object store."""
    return _OBJECT.fullmatch(text) is not None


def check_local(setting: str, path: object) -> None:
    """Raise an error for a URL as a place to write to; it would make a folder such as ``./s3:``.

    Args:
        setting: Name of the setting, for errors.
        path: Value of the setting.

    Raises:
        ConfigurationError: The path is a URL.
    """
    if is_url(path):
        allowed = (
            "a path on this machine, such as /data/results: only the root of all results can be "
            "an object store, such as s3://bucket/prefix"
        )
        raise ConfigurationError(setting, str(path), allowed)


config: Final = Configuration()
