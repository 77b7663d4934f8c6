"""Facts about the given inputs of a run, by which later runs recognize them."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.published_files import is_result
from dagster_dataops.errors import InputError
from dagster_dataops.foundation.hashing.file_digests import cached_digest
from dagster_dataops.foundation.places.bucket import (
    BucketFile,
    CopiedFile,
    Location,
    published_file,
)


def path_of(location: Location) -> str:
    """Return the path of an input on this machine, or the URL of an object that is no result."""
    return os.fspath(published_file(location) or str(location))


def facts_of(dataset: JsonlDataset) -> dict[str, Any]:
    """Return the facts about an input; see `Manifest.inputs`."""
    facts = {"path": path_of(dataset.location), "fingerprint": dataset.fingerprint or ""}
    file = published_file(dataset.location)
    if file is None:
        facts["url"] = str(dataset.location)
    if isinstance(file, CopiedFile) and is_result(file.name):
        facts["copy_of"] = str(file)
    if dataset.fingerprint is not None:
        state = {"state": list(dataset.state)} if dataset.rows is None and dataset.state else {}
        return {**facts, "rows": dataset.rows, **state}
    now = dataset.stamp()
    return {**facts, "rows": dataset.rows, "size_bytes": now.size, "modified_ns": now.modified_ns}


def told_apart(inputs: Sequence[JsonlDataset]) -> list[JsonlDataset]:
    """Return the inputs; those whose state does not tell contents apart have a digest.

    Raises:
        InputError: An input cannot be read.
    """
    return [
        _identified(dataset, None)
        if dataset.fingerprint is None and dataset.stamp().coarse
        else dataset
        for dataset in inputs
    ]


def identified(inputs: Sequence[JsonlDataset], last: Manifest | None) -> list[JsonlDataset]:
    """Return the inputs with digests, so that a copy, or another mount, is the same input.

    A file is read only if its state is not that of the last run.

    Args:
        inputs: The inputs.
        last: The manifest of the published result, if there is one.

    Raises:
        InputError: An input cannot be read.
    """
    return [
        _identified(dataset, last) if dataset.fingerprint is None else dataset for dataset in inputs
    ]


def _identified(dataset: JsonlDataset, last: Manifest | None) -> JsonlDataset:
    state, digest = dataset.stamp(), ""
    if last is not None and not state.coarse:
        if dataset.identity in last.made_from.get("input", "").split():  # unchanged since
            return dataset
        inputs = (source for source in last.inputs if source.get("state") == list(state))
        digest = next((source["fingerprint"] for source in inputs), "")
    digest = digest or cached_digest(dataset.location, state)
    return replace(dataset, fingerprint=digest, state=state)


def check_together(inputs: Sequence[JsonlDataset]) -> None:
    """Refuse inputs that are outputs of one node but of different runs of it.

    The results of a node with named outputs are put in place one after the other. After a crash in
    between, or during the publication, some are new and others old. The next run of the node puts
    the others in place.

    Raises:
        InputError: Two of the inputs are of different runs.
    """
    known: dict[str, tuple[str, Manifest]] = {}
    for location in (dataset.location for dataset in inputs) if len(inputs) > 1 else ():
        if isinstance(location, BucketFile):
            continue
        manifest = Manifest.load(location.with_name(f"{location.name}.json"))
        if manifest is None or not manifest.part_of:
            continue
        node = os.path.realpath(Path(location).parent / manifest.part_of)
        other, first = known.setdefault(node, (str(location), manifest))
        if (manifest.attempts, manifest.made_from) != (first.attempts, first.made_from):
            reason = (
                f"it is of run {manifest.attempts[-1]}, and {other} of run {first.attempts[-1]}: "
                "their publication was cut short. Run their node again, which finishes it"
            )
            raise InputError(str(location), reason)
