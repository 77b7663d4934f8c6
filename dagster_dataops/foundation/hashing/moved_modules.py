"""The modules of this package that moved, and the names under which they count in digests.

A digest has the names of functions and classes. One that moves to another folder is the same, and
the results and unfinished runs that were made with it stay valid.
"""

from typing import Final

_PACKAGE: Final = "dagster_dataops."
_FORMER: Final = {
    "datasets.exporters": "exporters",
    "execution.cluster": "cluster",
    "foundation.concurrency": "concurrency",
    "foundation.exports": "exports",
    "foundation.hashing": "hashing",
    "foundation.places.confined_names": "confined_names",
    "foundation.places.private_folders": "private_folders",
    "foundation.quantities": "quantities",
    "foundation.selectors": "selectors",
    "library.combine": "combine",
    "library.sorting": "library",
    "operators.secrets": "operators.options",
    "pipelines.graph": "graph",
    "pipelines.reporting": "reporting",
    "pipelines.tracing": "tracing",
    "streams.text_streams": "streams.text",
    "training.cooking": "cooking",
    "training.filestores": "filestores",
    "training.loading": "loading",
}
_MOVED: Final = tuple(f"{_PACKAGE}{name}" for name in _FORMER)


def counted_module(name: str) -> str:
    """Return the name of a module that counts in digests: the one it had first."""
    if not name.startswith(_MOVED):
        return name
    for present, former in _FORMER.items():
        start = f"{_PACKAGE}{present}"
        if name == start or name.startswith(f"{start}."):
            return f"{_PACKAGE}{former}{name.removeprefix(start)}"
    return name
