"""Operators that ship with the package. A group is imported when it is requested."""

from types import MappingProxyType
from typing import Final

GROUPS: Final = MappingProxyType(
    {
        "chat": "dagster_dataops.library.chat",
        "chunk": "dagster_dataops.library.chunk",
        "combine": "dagster_dataops.combine.stream_operators",
        "decontaminate": "dagster_dataops.library.decontaminate",
        "dedup": "dagster_dataops.library.dedup",
        "export": "dagster_dataops.library.export",
        "filters": "dagster_dataops.library.filters",
        "html": "dagster_dataops.library.html",
        "join": "dagster_dataops.library.join",
        "language": "dagster_dataops.library.language",
        "llm": "dagster_dataops.library.llm",
        "markdown": "dagster_dataops.library.markdown",
        "pii": "dagster_dataops.library.pii",
        "sample": "dagster_dataops.library.sample",
        "score": "dagster_dataops.library.score",
        "shape": "dagster_dataops.library.shape",
        "stats": "dagster_dataops.library.stats",
        "text": "dagster_dataops.library.text",
        "tokens": "dagster_dataops.library.tokens",
        "verify": "dagster_dataops.library.verify",
    }
)
"""The module that registers the operators of each group, by the name of the group."""
