"""Data versions of files that Dagster does not make: events of their external assets.

A step that reads such a file reports it as a materialization whose data version is a digest of the
content: to Dagster, that is how an external asset changes (observations would not count, unless the
asset were made by the beta `observable_source_asset`). So the file's page tells what was read, and
once somebody, such as a sensor, reports another content, what was made of the old one is stale.
Dagster looks up the versions of a step's inputs before the step begins; so the result is tagged
with the version that was read.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

import dagster as dg
import xxhash

from dagster_dataops.assets.metadata.column_metadata import schema_metadata
from dagster_dataops.assets.metadata.materialization import dataset_metadata
from dagster_dataops.assets.metadata.metadata_prefix import METADATA_PREFIX
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import DataOpsError
from dagster_dataops.hashing.file_digests import content_digest

Context: TypeAlias = dg.AssetExecutionContext | dg.OpExecutionContext

_VERSION: Final = "dagster/data_version"
_INPUT_VERSION: Final = "dagster/input_data_version"
_IDENTITY: Final = f"{METADATA_PREFIX}/identity"


class ExternalFiles:
    """The files that a step reads; to be made before it reads them.

    Args:
        inputs: Every input of the step, as in an `AssetPlan`: those that are paths count.
    """

    def __init__(self, inputs: Sequence[tuple[dg.AssetKey, object]]) -> None:
        self._files = {key: path for key, path in inputs if isinstance(path, Path)}
        self._alone = len(inputs) == 1
        # Of a file that is missing the step itself has more to say.
        self._before = {key: _identity(path) for key, path in self._files.items()}

    def report(self, context: Context, rows_in: int) -> dict[str, str]:
        """Report every file that is another than was last reported.

        A file is read for its version once for every change of it: as long as size, times and
        inode are those that were reported last, the version is too.

        Args:
            context: Of the step.
            rows_in: How many records the step has read of all its inputs.

        Returns:
            What the step's result is to be tagged with: the versions that it was made of. A file
            that changed since the step began is left out.
        """
        tags = {}
        for key, path in self._files.items():
            try:
                version = self._version(context, key, rows_in if self._alone else None)
            except (DataOpsError, OSError) as error:  # the result stands, whatever became of it
                context.log.warning("%s has no data version: %s", path, error)
                continue
            if version is not None:
                tags[f"{_INPUT_VERSION}/{key.to_user_string()}"] = version
        return tags

    def _version(self, context: Context, key: dg.AssetKey, rows: int | None) -> str | None:
        path, identity = self._files[key], self._before[key]
        known = _last_version(context.instance, key, identity)
        if known is not None and _identity(path) == identity:
            return known
        dataset = replace(JsonlDataset.of_file(path), rows=rows, fingerprint=content_digest(path))
        if _identity(path) != identity:
            return None
        context.log_event(_event(key, dataset, identity))
        return dataset.fingerprint


def file_materialization(key: dg.AssetKey, path: str | os.PathLike[str]) -> dg.AssetMaterialization:
    """Return the event that reports a file's present content, for a sensor or a script.

    A sensor returns it in `dagster.SensorResult.asset_events`, a script hands it to
    `dagster.DagsterInstance.report_runless_asset_event`. The file is read for its digest.

    Args:
        key: The file's asset.
        path: A jsonl file.

    Raises:
        InputError: There is no such file, or it is none.
    """
    dataset = JsonlDataset.of_file(path)
    identity = _identity(dataset.path)
    return _event(key, replace(dataset, fingerprint=content_digest(dataset.path)), identity)


def _event(
    key: dg.AssetKey, dataset: JsonlDataset, identity: str | None
) -> dg.AssetMaterialization:
    modified = dataset.path.stat().st_mtime
    return dg.AssetMaterialization(
        asset_key=key,
        metadata={
            **dataset_metadata(dataset),
            **schema_metadata(dataset),
            "dagster/last_updated_timestamp": dg.MetadataValue.timestamp(modified),
        },
        tags={_VERSION: dataset.fingerprint or "", _IDENTITY: identity or ""},
    )


def _identity(path: Path) -> str | None:
    """Return a digest of what the file system knows of a file, if there is one."""
    try:
        known = JsonlDataset(path, 0).identity
        return xxhash.xxh3_64_hexdigest(known.encode())
    except DataOpsError:
        return None


def _last_version(
    instance: dg.DagsterInstance, key: dg.AssetKey, identity: str | None
) -> str | None:
    """Return the version that was reported last, if it was of the very same file."""
    # A third of the price of `get_latest_materialization_event`, which reads the asset's row too.
    found = instance.fetch_materializations(key, limit=1).records
    reported = found[0].asset_materialization if found else None
    tags = (reported.tags or {}) if reported is not None else {}
    same = identity is not None and tags.get(_IDENTITY) == identity
    return tags.get(_VERSION) if same else None
