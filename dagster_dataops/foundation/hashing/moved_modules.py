"""The former names of modules of this package, which digests keep.

Digests contain the names of functions and classes with their modules. Results and unfinished runs
stay valid when a module moves, because its former name is used.
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
    "library.analysis.tokenizers.tokenization": "library.analysis.tokenization",
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


def counted_module(module: object) -> str:
    """Return the name that a module has in digests: the one before it moved.

    Args:
        module: The ``__module__`` of a function or a class; methods of C code may have ``None``.
    """
    name = str(module)
    if not name.startswith(_MOVED):
        return name
    for present, former in _FORMER.items():
        start = f"{_PACKAGE}{present}"
        if name == start or name.startswith(f"{start}."):
            return f"{_PACKAGE}{former}{name.removeprefix(start)}"
    return name
