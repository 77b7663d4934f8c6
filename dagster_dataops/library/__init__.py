"""Operators that ship with the package. A group is imported when it is requested."""

from types import MappingProxyType
from typing import Final

from dagster_dataops.library.columns_read import INPUT_KEY, READS
from dagster_dataops.operators.options.declared_columns import Declaration

_FOLDERS: Final = """
    audio chat chunk code decontaminate dedup documents export filters html images join language llm
    markdown pii retrieval review sample score shape stats text tokens verify video
    """.split()  # noqa: SIM905 - a list of words is easier to read
_MODULES: Final = {
    "combine": "dagster_dataops.library.combine.stream_operators",
    **{folder: f"dagster_dataops.library.{folder}" for folder in _FOLDERS},
}
GROUPS: Final = MappingProxyType(dict(sorted(_MODULES.items())))
"""The module that registers the operators of each group, by the name of the group."""


def reads_of(operator: str) -> Declaration:
    """Return the declaration of the columns that the operator of a qualified name needs."""
    return READS.get(operator, INPUT_KEY)
