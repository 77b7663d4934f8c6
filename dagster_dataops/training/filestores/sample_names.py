"""Divide the names of files into the key of a sample and the name of a part."""

import re
from typing import Final

_META: Final = re.compile(r"__[^/]*__($|/)")
NO_PREFIX: Final[str | tuple[str, ...]] = ()
"""No name begins with it: names that begin with ``_`` must be divided one by one."""


def split_name(name: str) -> tuple[str, str] | None:
    """Return key and part of a file name, by the rules of webdataset and Energon.

    The key ends before the first dot of the last component: ``d/x.y.txt`` has the key ``d/x`` and
    the part ``y.txt``. A name belongs to no sample if its last component has no dot or begins with
    one, or if the name is ``__…__`` or is in such a folder.
    """
    if "/" not in name and not name.startswith(("_", ".")):
        key, mark, part = name.partition(".")
        return (key, part) if mark else None
    slash = name.rfind("/") + 1
    dot = name.find(".", slash)
    if dot <= slash or (name.startswith("__") and _META.match(name)):
        return None
    return name[:dot], name[dot + 1 :]
