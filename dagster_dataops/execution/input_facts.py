"""Facts about the given inputs of a run, by which later runs recognize them."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.foundation.hashing.file_digests import cached_digest
from dagster_dataops.foundation.places.bucket import Location, published_file


def path_of(location: Location) -> str:
    """Return the path of an input on this machine, or the URL of an object that is no result."""
    return os.fspath(published_file(location) or str(location))


def facts_of(dataset: JsonlDataset) -> dict[str, Any]:
    """Return the facts about an input; see `Manifest.inputs`."""
    facts = {"path": path_of(dataset.location), "fingerprint": dataset.fingerprint or ""}
    if published_file(dataset.location) is None:
        facts["url"] = str(dataset.location)
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
