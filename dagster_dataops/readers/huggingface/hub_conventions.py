"""Conventions of the Hub: names of datasets, and the files of splits in dataset cards."""

import re
from typing import Any, Final

HUB_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
"""Names of datasets on the Hub, such as ``org/name``."""


def split_files(data_files: Any) -> list[dict[str, Any]]:
    """Return split and patterns of each entry of ``data_files`` in the YAML of a dataset card.

    Patterns without a split are those of the split ``train``.
    """
    entries = data_files or []
    if isinstance(entries, str) or any(isinstance(entry, str) for entry in entries):
        return [{"split": "train", "path": entries}]
    return list(entries)
