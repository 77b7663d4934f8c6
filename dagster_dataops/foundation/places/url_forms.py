"""URLs in place of paths: which texts are URLs, and the settings that may not be one."""

import os
import re
from pathlib import Path
from typing import Final

from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.frozen import frozen
from dagster_dataops.foundation.override import override

# One letter is a drive of Windows. pathlib makes one slash of two.
_URL: Final = r"(?i)([a-z0-9+.-]+::)*[a-z][a-z0-9+.-]+:/"
_OBJECT: Final = r"(?i)(s3|gs|az|abfs)://[^/@]+/[^*?\[\]]*\.jsonl"


@frozen(eq=True, kw_only=False)
class ObjectUrl:
    """The URL of an object on a store. The run that reads it has the options of the store."""

    url: str

    @override
    def __str__(self) -> str:
        return self.url


def is_url(path: object) -> bool:
    """Whether a path is a URL, such as ``s3://bucket/x``, also as `pathlib` shortens it."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else str(path)
    return ":/" in text and re.match(_URL, text) is not None


def is_object_url(text: str) -> bool:
    """Whether a text is the URL of one jsonl file on an object store."""
    return re.fullmatch(_OBJECT, text) is not None


def check_local(setting: str, path: object) -> None:
    """Raise an error for a URL as a place to write to; it would make a folder such as ``./s3:``.

    Raises:
        ConfigurationError: The path is a URL.
    """
    if is_url(path):
        allowed = (
            "a path on this machine, such as /data/results: only the root of all results can be "
            "an object store, such as s3://bucket/prefix"
        )
        raise ConfigurationError(setting, str(path), allowed)


def folder_setting(setting: str, text: str) -> Path:
    """Return the folder that a setting names, as an absolute path.

    Raises:
        ConfigurationError: No folder can have that path, or it is a URL.
    """
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
