"""The paths of a selector as a tree, so that shared steps are taken once."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from dagster_dataops.selectors.grammar import EVERY, Path, PathStep

MOST_NESTED: Final = 8  # nested loops; Python allows 20

Branch: TypeAlias = "dict[PathStep, Branch | int]"


def compilable(paths: Sequence[Path]) -> bool:
    """Return whether the paths can be compiled: no overlaps, and within the size limits."""
    deep = any(path.count(EVERY) > MOST_NESTED or len(path) > 4 * MOST_NESTED for path in paths)
    return not deep and len(paths) <= 8 * MOST_NESTED and build_tree(paths) is not None


def build_tree(paths: Sequence[Path]) -> "Branch | None":
    """Return the paths as a tree with their numbers as leaves; ``None`` if they overlap."""
    root: Branch = {}
    for number, path in enumerate(paths):
        branch = root
        for step in path[:-1]:
            below = branch.setdefault(step, {})
            if isinstance(below, int) or _has_overlap(branch):
                return None
            branch = below
        if path[-1] in branch:
            return None
        branch[path[-1]] = number
        if _has_overlap(branch):
            return None
    return root


def _has_overlap(branch: Branch) -> bool:
    """Return whether ``[*]`` has siblings, which would overlap with it."""
    return EVERY in branch and len(branch) > 1
