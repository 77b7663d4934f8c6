"""The files of splits, as a dataset card lists them."""

from typing import Any


def split_files(data_files: Any) -> list[dict[str, Any]]:
    """Return split and patterns of each entry of ``data_files`` in the YAML of a dataset card.

    Patterns without a split are those of the split ``train``.
    """
    entries = data_files or []
    if isinstance(entries, str) or any(isinstance(entry, str) for entry in entries):
        return [{"split": "train", "path": entries}]
    return list(entries)
