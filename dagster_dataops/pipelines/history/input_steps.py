"""Steps through the input records of two versions of a node, however these can be matched."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.versions.input_digests import InputDigests
from dagster_dataops.checkpoints.versions.node_versions import version_named, versions_at
from dagster_dataops.checkpoints.versions.version import CURRENT, ResultVersion
from dagster_dataops.datasets.published_files import MANIFEST, is_result, manifest_of, node_of
from dagster_dataops.errors import ResultMissingError
from dagster_dataops.pipelines.history.alignment import Change, InputStep, aligned

Steps: TypeAlias = Iterator[InputStep]
StepsOfLines: TypeAlias = Callable[[ResultVersion, ResultVersion, str], Steps | None]


def input_steps(
    before: ResultVersion, after: ResultVersion, steps_of_lines: StepsOfLines
) -> Steps | None:
    """Return the steps through the inputs of two versions; ``None`` if nothing matches them.

    Equal inputs need no matching. Inputs that are two versions of one result are matched by that
    result's own inputs, as far as they are kept. Other ones are matched by the digests of their
    records.

    ``steps_of_lines`` returns the steps through the lines of an output of two versions;
    ``None`` if these cannot be matched by their input.
    """
    if is_same_input(before.manifest, after.manifest):
        return iter([InputStep(Change.EQUAL, after.manifest.rows_in)])
    pair = _inputs_at(before, after)
    if pair is not None and (steps := steps_of_lines(*pair)) is not None:
        return steps
    digests = [InputDigests.of(version.folder, version.manifest) for version in (before, after)]
    if digests[0] is None or digests[1] is None:
        return None
    return aligned(digests[0], digests[1])


def is_same_input(before: Manifest, after: Manifest) -> bool:
    """Return whether two results were made of one content."""
    inputs = [version.made_from.get("input") for version in (before, after)]
    return inputs[0] is not None and inputs[0] == inputs[1] and before.rows_in == after.rows_in


def _inputs_at(
    before: ResultVersion, after: ResultVersion
) -> tuple[ResultVersion, ResultVersion, str] | None:
    """Return the kept versions of the result that is the only input of both, and its output."""
    facts = [version.manifest.inputs for version in (before, after)]
    if any(len(listed) != 1 for listed in facts):
        return None
    paths = [Path(str(listed[0].get("path"))) for listed in facts]
    if manifest_of(paths[0]) != manifest_of(paths[1]):  # a result may have changed its form
        return None
    node = _node_of(paths[1], after.folder)
    if node is None:
        return None
    old, new = (_version_with(*node, listed[0]) for listed in facts)
    return None if old is None or new is None else (old, new, node[1])


def _node_of(result: Path, near: NodeFolder) -> tuple[NodeFolder, str] | None:
    """Return the node of a result, and the name of the output; ``None`` if no node has made it."""
    if not is_result(result.name):
        return None
    root = near.root.at(result.parent)
    folder = NodeFolder.of(root, node_of(result.name))
    of_result = Manifest.of(folder)
    if of_result is None or not of_result.part_of:
        return None if of_result is None else (folder, "")
    path = Path(os.path.normpath(result.parent / of_result.part_of))
    node = NodeFolder.of(root.at(path.parent), path.name.removesuffix(MANIFEST))
    manifest = Manifest.of(node)
    outputs = {} if manifest is None else manifest.parts(node)
    names = [name for name, (place, _) in outputs.items() if place.manifest == folder.manifest]
    return (node, names[0]) if names else None


def _version_with(folder: NodeFolder, output: str, facts: dict[str, Any]) -> ResultVersion | None:
    """Return the version of a node with an output of the content in ``facts``, of an input."""
    names = [CURRENT, *map(str, reversed(versions_at(folder).numbers()))]
    for name in names:
        try:
            version = version_named(folder, name)
        except ResultMissingError:  # removed meanwhile, or damaged
            continue
        parts = version.manifest.parts(version.place)
        if output in parts and facts.get("fingerprint") == parts[output][1].fingerprint:
            return version
    return None
