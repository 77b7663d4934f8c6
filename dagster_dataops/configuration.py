"""Settings of plain Python runs, named as LazyLLM names them.

They are read when a run starts, not when an operator is constructed. Precedence: a value assigned
to ``config`` > the environment > the default. Under Dagster, `DataOpsResource` replaces them.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias

from dagster_dataops.errors import ConfigurationError

_DEFAULT_ROOT: Final = "data_pipeline_res"
Resume: TypeAlias = bool | Literal["failed_records"]

# One letter is a drive of Windows. pathlib makes one slash of two.
_URL: Final = re.compile(r"([a-z0-9+.-]+::)*[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


class Configuration:
    """The settings; assign an attribute to set it, or ``None`` to use the environment again.

    Attributes:
        data_process_path: Root folder of all results. Environment DATAOPS_DATA_PROCESS_PATH,
            default ``data_pipeline_res`` in the working directory.
        data_process_resume: Whether a call resumes from an unfinished checkpoint and reuses
            finished results of the same operator, options, code and input; "failed_records"
            retries only the failed records of finished results. Environment
            DATAOPS_DATA_PROCESS_RESUME, default False.
        data_process_progress: Whether to draw progress bars: True, False, or None for "when
            standard error is a terminal". Environment DATAOPS_DATA_PROCESS_PROGRESS.
        clients: Objects that operators get from their context by name, such as clients of model
            servers: ``config.clients["default"] = ...``.
    """

    __slots__ = ("_assigned", "_clients")  # a misspelt setting is an AttributeError

    def __init__(self) -> None:
        self._assigned: Final[dict[str, object]] = {}
        self._clients: Final[dict[str, object]] = {}

    @property
    def clients(self) -> dict[str, object]:
        """Objects that operators get from their context by name."""
        return self._clients

    @property
    def data_process_path(self) -> Path:
        """Root folder of all results, as an absolute path.

        Raises:
            ConfigurationError: No folder can have that path.
        """
        return folder_setting("data_process_path", self._read("data_process_path"))

    @data_process_path.setter
    def data_process_path(self, value: str | Path | None) -> None:
        self._assigned["data_process_path"] = value

    @property
    def data_process_resume(self) -> Resume:
        """Whether calls resume an earlier run, or retry its failed records."""
        value = self._read("data_process_resume")
        if str(value).strip().lower() == "failed_records":
            return "failed_records"
        return self._read_bool("data_process_resume", "true or false, or failed_records") or False

    @data_process_resume.setter
    def data_process_resume(self, value: Resume | None) -> None:
        self._assigned["data_process_resume"] = value

    @property
    def data_process_progress(self) -> bool | None:
        """Whether progress bars are drawn; ``None`` when standard error decides."""
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


def is_url(path: object) -> bool:
    """Whether a path is a URL, such as ``s3://bucket/x``, also as `pathlib` shortens it."""
    return _URL.match(str(path)) is not None


def check_local(setting: str, path: object) -> None:
    """Refuse a URL as a place to write to; it would make a folder such as ``./s3:``.

    Args:
        setting: Name of the setting, for errors.
        path: Value of the setting.

    Raises:
        ConfigurationError: It is a URL.
    """
    if is_url(path):
        allowed = (
            "a path on this machine, such as /data/results: nothing can be written to URLs yet; "
            "mount the store as a folder, or copy the files there"
        )
        raise ConfigurationError(setting, str(path), allowed)


config: Final = Configuration()
