"""Look at the stages of a stream or the nodes of a pipeline, and exchange some.

Streams and graphs are immutable: every function returns a new one. Stages are given as `find` or
`traverse` returns them, or by name if only one stage has it; nodes are given by name.
"""

from dagster_dataops.pipelines.graph.editing import *  # noqa: F403 - its public names
from dagster_dataops.pipelines.graph.editing import __all__ as __all__  # noqa: PLC0414 - re-exported


def __dir__() -> list[str]:
    return __all__
