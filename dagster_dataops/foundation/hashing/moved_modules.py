"""Former names of modules of this package that were moved.

A digest contains the names of functions and classes with their modules. It uses the former name of
a module that was moved, so that results and unfinished runs stay valid.
"""

from typing import Final

_PACKAGE: Final = "dagster_dataops."
_FORMER: Final = {
    "datasets.exporters": "exporters",
    "execution.cluster": "cluster",
    "foundation.concurrency": "concurrency",
    "foundation.entry_points": "entry_points",
    "foundation.exports": "exports",
    "foundation.hashing": "hashing",
    "foundation.parts": "parts",
    "foundation.places.confined_names": "confined_names",
    "foundation.places.private_folders": "private_folders",
    "foundation.quantities": "quantities",
    "foundation.selectors": "selectors",
    "library.analysis.tokenizers.tokenization": "library.analysis.tokenization",
    "library.combine": "combine",
    "library.sorting": "library",
    "operators.secrets.hidden_errors": "operators.hidden_errors",  # before that of the folder
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
    """Return the name of a module in digests: the former name of one that was moved.

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
