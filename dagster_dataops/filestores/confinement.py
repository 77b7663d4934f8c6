"""Confine names to their store."""

from dagster_dataops.errors import PathEscapeError


def confined(name: str, store: str) -> str:
    """Return a name in its plain form: relative, with ``/``, without ``.`` and ``..``.

    Args:
        name: A name in the store, such as ``sub/x.txt``.
        store: The store, for the message.

    Raises:
        PathEscapeError: The name is absolute, leads out of the store, or has a NUL in it.
    """
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if name.startswith("/") or ".." in parts or "\0" in name or not parts:
        raise PathEscapeError(store, name)
    return "/".join(parts)
