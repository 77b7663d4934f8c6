"""Report the data versions of source files as events of their external assets.

A step that reads a source file reports it as a materialization whose data version is a digest of
the content. Dagster then marks results as stale when a later report, such as that of a sensor, has
another version. An observation would have no effect, unless the asset were a beta
`observable_source_asset`.

Dagster looks up the versions of a step's inputs before the step begins. Therefore the result is
tagged with the version that the step really read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import dagster as dg
import xxhash

from dagster_dataops.assets.metadata.metadata_keys import IDENTITY, LAST_UPDATED
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import DataOpsError
from dagster_dataops.foundation.hashing.file_digests import content_digest
from dagster_dataops.foundation.places.bucket import Location, local_path
from dagster_dataops.foundation.places.url_forms import ObjectUrl

VERSION: Final = "dagster/data_version"
INPUT_VERSION: Final = "dagster/input_data_version"


class ExternalFiles:
    """The source files of a step. Construct it before the step reads them.

    Of the ``inputs`` of an `AssetPlan` only paths are used; ``texts`` say what their columns
    are, and are asked for only if a file is reported.
    """

    def __init__(
        self,
        inputs: Sequence[tuple[dg.AssetKey, object]],
        dataops: DataOpsResource,
        texts: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._texts = texts
        self._files = {
            key: dataops.location(file)
            for key, file in inputs
            if isinstance(file, (Path, ObjectUrl))
        }
        self._alone = len(inputs) == 1
        # `None` for a missing file: the step raises a better error.
        self._before = {key: _identity(path) for key, path in self._files.items()}

    def report(self, context: StepContext, rows_in: int) -> dict[str, str]:
        """Report every file that changed since its last report.

        A file is read once per change. While size, times and inode equal those of the last
        report, its version is reused.

        Returns:
            Tags for the result of the step: the versions of its files, except those that changed
            after the step began.
        """
        tags = {}
        for key, path in self._files.items():
            try:
                version = self._version(context, key, rows_in if self._alone else None)
            except (DataOpsError, OSError) as error:  # the result is valid without the version
                context.log.warning("%s has no data version: %s", path, error)
                continue
            if version is not None:
                tags[f"{INPUT_VERSION}/{key.to_user_string()}"] = version
        return tags

    def _version(self, context: StepContext, key: dg.AssetKey, rows: int | None) -> str | None:
        path, identity = self._files[key], self._before[key]
        known = _last_version(context.instance, key, identity)
        if known is not None and _identity(path) == identity:
            return known
        dataset = replace(JsonlDataset.at(path), rows=rows, fingerprint=content_digest(path))
        if _identity(path) != identity:
            return None
        context.log_event(_event(key, dataset, identity, self._texts()))
        return dataset.fingerprint


def _event(
    key: dg.AssetKey, dataset: JsonlDataset, identity: str | None, texts: Mapping[str, str]
) -> dg.AssetMaterialization:
    from dagster_dataops.assets.metadata.columns.column_metadata import schema_metadata
    from dagster_dataops.assets.metadata.materialization import dataset_metadata

    times = {}
    if (path := local_path(dataset.location)) is not None:
        modified = path.stat().st_mtime
        times[LAST_UPDATED] = dg.MetadataValue.timestamp(modified)
    return dg.AssetMaterialization(
        asset_key=key,
        metadata={
            **dataset_metadata(dataset),
            **schema_metadata(dataset, texts),
            **times,
        },
        tags={VERSION: dataset.fingerprint or "", IDENTITY: identity or ""},
    )


def _identity(location: Location) -> str | None:
    """Return a digest of a file's size, times and inode; ``None`` if it does not exist."""
    try:
        known = JsonlDataset(location, 0).identity
        return xxhash.xxh3_64_hexdigest(known.encode())
    except DataOpsError:
        return None


def _last_version(
    instance: dg.DagsterInstance, key: dg.AssetKey, identity: str | None
) -> str | None:
    """Return the last reported version if the file has not changed since."""
    tags = reported_tags(instance, key)
    same = identity is not None and tags.get(IDENTITY) == identity
    return tags.get(VERSION) if same else None


def reported_tags(instance: dg.DagsterInstance, key: dg.AssetKey) -> Mapping[str, str]:
    """Return the tags of the last report of an external asset; none without a report."""
    # A third of the time of `get_latest_materialization_event`, which also reads the asset's row.
    records = instance.fetch_materializations(key, limit=1).records
    reported = records[0].asset_materialization if records else None
    return (reported.tags or {}) if reported is not None else {}
