"""Settings of plain Python runs, named as LazyLLM names them.

They are read when a run starts, not when an operator is constructed. Precedence: a value assigned
to ``config`` > the environment > the default. Under Dagster, fields of `DataOpsResource` precede
them.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.places.bucket import BucketFile, prefix_of, url_of_copy
from dagster_dataops.foundation.places.opening import FORMS, PLAIN
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.foundation.places.url_forms import folder_setting

_DEFAULT_ROOT: Final = "data_pipeline_res"
_SCRATCH: Final = "dagster-dataops"
WHOLE_RESULT_MB: Final = 16.0
_FILE_CACHE_GB: Final = 50.0
Resume: TypeAlias = bool | Literal["failed_records", "across_code"] | Mapping[str, str]
_RESUME: Final = (
    "true or false, or failed_records or across_code, or {'records': 'CONDITION'} with the name of "
    "a 'node' if it is for one node"
)

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
            operator's code has changed; ``{"records": "drop_reason == 'timeout'"}`` processes only
            the records of finished results again that fulfil the condition, with ``"node"`` those
            of one node. Environment DATAOPS_DATA_PROCESS_RESUME, default False.
        data_process_progress: Whether to draw progress bars: True, False, or None for "when
            standard error is a terminal". Environment DATAOPS_DATA_PROCESS_PROGRESS.
        data_process_scratch: Folder for working copies of results on object stores. Environment
            DATAOPS_DATA_PROCESS_SCRATCH, default a folder in the temporary folder that only this
            user can write to. A folder that is set here must be one that no other user writes to,
            and have no other files: ``s3/bucket/prefix`` in it means ``s3://bucket/prefix``.
        whole_result_mb: The largest result of a record operator on an object store, in MB, that is
            written as one object. The lines of a larger one stay in the objects in which they were
            sent, and are not sent again. ``inf`` for one object in any case. Environment
            DATAOPS_WHOLE_RESULT_MB, default 16.
        result_format: The form of the files of results: ``jsonl``, or ``jsonl.zst``, which is
            compressed. Both are the same result; a change costs no call of an operator. Environment
            DATAOPS_RESULT_FORMAT, default ``jsonl``.
        storage_options: Options of object stores, such as ``endpoint`` and ``access_key_id``, over
            those of the environment.
        url_options: Arguments of fsspec's file systems, such as logins, by the beginning of URLs:
            ``config.url_options["https://data.example.org"] = {"headers": {...}}``. They hold for
            all that is read by URL: inputs, listings, files of records and shards. Each text and
            number in them must be one that JSON can hold.
        file_cache: Folder of this machine for copies of files that records name by URL, or in a
            shard or an object store; ``None`` for none. Environment DATAOPS_FILE_CACHE.
        file_cache_gb: The largest size of all files in it, in GB (2**30 bytes). The least
            recently used files are deleted. Environment DATAOPS_FILE_CACHE_GB, default 50.
        clients: Objects that operators get from their context by name, such as clients of model
            servers: ``config.clients["default"] = ...``.
        cluster: Machines that operators in process mode run on, such as ``RayCluster("auto")``;
            ``None`` for this machine.
    """

    # A misspelt setting is an AttributeError.
    __slots__ = ("_assigned", "_clients", "_of_runs", "_storage_options", "_url_options")

    def __init__(self) -> None:
        self._assigned: Final[dict[str, object]] = {}
        self._clients: Final[dict[str, object]] = {}
        self._storage_options: Final[dict[str, str]] = {}
        self._url_options: Final[dict[str, Mapping[str, Any]]] = {}
        self._of_runs: Final[list[Mapping[str, Any]]] = []  # those of a later run precede

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
        return self.results_root().path

    @data_process_path.setter
    def data_process_path(self, value: str | Path | None) -> None:
        self._assigned["data_process_path"] = value

    def results_root(self) -> Root:
        """Return the folder `data_process_path`, with its bucket if it is a working copy."""
        name = "data_process_path"
        return root_setting(name, self._read(name), self.storage_options, self)

    @property
    def data_process_scratch(self) -> Path:
        """Folder for working copies of results on object stores, as an absolute path.

        Raises:
            ConfigurationError: The default folder is another user's, or others can write to it; or
                no folder can have the path that was set.
        """
        return self._assigned_scratch() or _default_scratch()

    @data_process_scratch.setter
    def data_process_scratch(self, value: str | Path | None) -> None:
        self._assigned["data_process_scratch"] = value

    @property
    def result_format(self) -> str:
        """The form of the files of results, ``jsonl`` or ``jsonl.zst``.

        Raises:
            ConfigurationError: It is none of these.
            MissingExtraError: It is ``jsonl.zst``, and the package for that is not installed.
        """
        return format_setting("result_format", self._read("result_format"))

    @result_format.setter
    def result_format(self, value: str | None) -> None:
        self._assigned["result_format"] = value

    @property
    def storage_options(self) -> dict[str, str]:
        """Options of object stores, over those of the environment."""
        return self._storage_options

    @property
    def url_options(self) -> dict[str, Mapping[str, Any]]:
        """Arguments of fsspec's file systems by the beginning of URLs, as they were assigned."""
        return self._url_options

    def logins(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the `url_options`, and over them those of the runs of this process."""
        of_runs = [settings.get("url_options") for settings in tuple(self._of_runs)]
        if not any(of_runs):
            return self._url_options
        logins = dict(self._url_options)
        for options in of_runs:
            logins.update(options or {})
        return logins

    @property
    def file_cache(self) -> Path | None:
        """Folder for copies of files that records name, as an absolute path; ``None`` for none.

        Raises:
            ConfigurationError: No folder can have that path, or it is a URL.
        """
        value = self._read("file_cache")
        return folder_setting("file_cache", str(value)) if value else None

    @file_cache.setter
    def file_cache(self, value: str | Path | None) -> None:
        self._assigned["file_cache"] = value

    @property
    def file_cache_gb(self) -> float:
        """The largest size of all files in the folder `file_cache`, in GB."""
        return self._read_size("file_cache_gb", _FILE_CACHE_GB, "GB")

    @file_cache_gb.setter
    def file_cache_gb(self, value: float | None) -> None:
        self._assigned["file_cache_gb"] = value

    @property
    def whole_result_mb(self) -> float:
        """The largest result on an object store, in MB, that is one object in any case."""
        return self._read_size("whole_result_mb", WHOLE_RESULT_MB, "MB")

    @whole_result_mb.setter
    def whole_result_mb(self, value: float | None) -> None:
        self._assigned["whole_result_mb"] = value

    @property
    def data_process_resume(self) -> Resume:
        """How a call uses an earlier run; False starts afresh.

        True resumes it, "across_code" does so even if the operator's code has changed, and
        "failed_records" retries the failed records of a finished result. A mapping has a condition
        under "records": only the records that fulfil it are processed again. It may have the name
        of a single node under "node".
        """
        value = self._read("data_process_resume")
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = _mapping(value)
        if isinstance(value, Mapping):
            return _chosen(value)
        match str(value).strip().lower():
            case "failed_records":
                return "failed_records"
            case "across_code":
                return "across_code"
        return self._read_bool("data_process_resume", _RESUME) or False

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

    @contextmanager
    def of_run(self, settings: Mapping[str, Any]) -> Iterator[None]:
        """Let settings of a run precede the assigned ones inside a ``with`` block, in any thread.

        Args:
            settings: Values of ``url_options``, ``file_cache`` and ``file_cache_gb``; ``None`` for
                one that the run does not set.
        """
        of_this_run = dict(settings)
        self._of_runs.append(of_this_run)
        try:
            yield
        finally:
            self._of_runs[:] = [other for other in self._of_runs if other is not of_this_run]

    def take_settings_of_run(self, settings: Mapping[str, Any]) -> None:
        """Take the settings of the run that this process works for, in place of those before.

        Args:
            settings: As for `of_run`.
        """
        self._of_runs[:] = [dict(settings)]

    def scratch_path(self) -> Path:
        """Return the path of `data_process_scratch` without creating or checking the folder."""
        from dagster_dataops.foundation.places.private_folders import private_path

        return self._assigned_scratch() or private_path(_SCRATCH)

    def _assigned_scratch(self) -> Path | None:
        value = self._read("data_process_scratch")
        return folder_setting("data_process_scratch", str(value)) if value else None

    def _read(self, setting: str) -> object:
        for settings in reversed(self._of_runs):
            if settings.get(setting) is not None:
                return settings[setting]
        assigned = self._assigned.get(setting)
        return os.environ.get(f"DATAOPS_{setting.upper()}") if assigned is None else assigned

    def _read_size(self, setting: str, default: float, unit: str) -> float:
        value = self._read(setting)
        try:
            size = default if value is None else float(str(value))
        except ValueError:
            size = -1.0
        if not size >= 0:  # also for nan
            raise ConfigurationError(setting, value, f"a number of {unit} from 0 on, or inf")
        return size

    def _read_bool(self, setting: str, allowed: str = "true or false") -> bool | None:
        value = self._read(setting)
        if value is None or isinstance(value, bool):
            return value
        text = str(value).strip().lower()
        if text not in _TRUE | _FALSE:
            raise ConfigurationError(setting, value, allowed)
        return text in _TRUE


def format_setting(setting: str, value: object) -> str:
    """Return the form of the files of results.

    Args:
        setting: The name of the setting, for errors.
        value: The form; an empty value is the default.

    Raises:
        ConfigurationError: It is no such form.
        MissingExtraError: The package for it is not installed.
    """
    form = value or PLAIN
    if form not in FORMS:
        raise ConfigurationError(setting, value, " or ".join(FORMS))
    if form != PLAIN:
        from dagster_dataops.foundation.frames import frame_writer

        del frame_writer  # it can be imported
    return str(form)


def _mapping(text: str) -> object:
    """Parse the JSON text of an environment variable; return a text that is no JSON as it is."""
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text


def _chosen(value: Mapping[Any, Any]) -> Mapping[str, str]:
    """Check a setting that chooses records by a condition, and return it."""
    known = {"records", "node"}
    if "records" not in value or set(value) - known or not _are_texts(value.values()):
        raise ConfigurationError("data_process_resume", dict(value), _RESUME)
    return dict(value)


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) and value.strip() for value in values)


def _default_scratch() -> Path:
    from dagster_dataops.foundation.places.private_folders import (  # imports tempfile
        ForeignFolderError,
        private_folder,
    )

    try:
        return private_folder(_SCRATCH)
    except ForeignFolderError as error:
        allowed = f"a folder of this user; {error.strerror}, or set DATAOPS_DATA_PROCESS_SCRATCH"
        raise ConfigurationError("data_process_scratch", error.filename, allowed) from None
    except OSError as error:
        allowed = f"a folder that can be created; {error.strerror}"
        raise ConfigurationError("data_process_scratch", error.filename, allowed) from None


def root_setting(
    setting: str,
    value: object,
    options: Mapping[str, str] = _NO_OPTIONS,
    settings: Configuration | None = None,
) -> Root:
    """Return the folder of all results. For a URL of an object store it is a working copy.

    A path below the folder for working copies, such as ``s3/bucket/prefix`` in it, means the URL,
    so that a setting can be read and set again.

    Args:
        setting: Name of the setting, for errors.
        value: A path or a URL, such as ``s3://bucket/prefix``; an empty value is the default.
        options: Options of the object store.
        settings: They name the folder for working copies; by default ``config``.

    Raises:
        ConfigurationError: No folder can have that path, or the URL is not that of an object store.
    """
    known = settings or config
    prefix = prefix_of(setting, value, options, lambda: known.data_process_scratch)
    if prefix is not None:
        return Root(prefix.folder, prefix.bucket)
    folder = folder_setting(setting, str(value) if value else _DEFAULT_ROOT)
    url = url_of_copy(folder, known.scratch_path)
    prefix = prefix_of(setting, url, options, lambda: known.data_process_scratch)
    if prefix is None:
        return Root(folder)
    if not folder.is_relative_to(prefix.bucket.folder):
        allowed = f"the URL {url}: the path is that of a copy from a server with another endpoint"
        raise ConfigurationError(setting, str(folder), allowed)
    return Root(folder, prefix.bucket)


def folder_at(path: str | os.PathLike[str]) -> Root:
    """Return the folder that a user names by a URL or a path, such as one in a working copy.

    Raises:
        ConfigurationError: No folder can have that path, or the URL is not that of an object store.
    """
    return root_setting("folder", path, config.storage_options)


def input_object(url: str, options: Mapping[str, str]) -> BucketFile:
    """Return the object that a URL names.

    Args:
        url: The URL, such as ``s3://bucket/docs.jsonl``.
        options: Options of the object store.

    Raises:
        ConfigurationError: It is not the URL of an object on an object store.
    """
    prefix = prefix_of("input", url, options, lambda: config.data_process_scratch)
    if prefix is None or not prefix.prefix:
        raise ConfigurationError("input", url, "the URL of an object on an object store")
    return BucketFile(prefix.bucket, prefix.prefix)


config: Final = Configuration()
