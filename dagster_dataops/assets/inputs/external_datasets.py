"""The datasets of metadatasets as external assets, and their data versions.

A step that reads a dataset reports it as a materialization, as `ExternalFiles` does for files. The
data version is a digest of the sizes, times and ends of its shards.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import dagster as dg

from dagster_dataops.assets.inputs.external_files import INPUT_VERSION, VERSION, reported_tags
from dagster_dataops.assets.metadata.metadata_keys import NAMED_IN, ROW_COUNT, URI
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.errors import DataOpsError
from dagster_dataops.execution.runners.given_stream import GivenStream
from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.operators.definition.operator import Operator

if TYPE_CHECKING:
    from dagster_dataops.training.cooking.crude_sources import CrudeSource
    from dagster_dataops.training.cooking.metadataset.metadataset_leaves import MetadatasetLeaf

_FOLDER: Final = "datasets"


def dataset_key(leaf: "MetadatasetLeaf") -> dg.AssetKey:
    """Return the key of a dataset: ``datasets`` and the parts of its path.

    That of an asset of this package is its own key.
    """
    parts = [part for part in leaf.path.replace("://", "/").split("/") if part]
    if leaf.is_asset:
        return dg.AssetKey(parts)
    return dg.AssetKey([_FOLDER, *(re.sub(r"[^A-Za-z0-9_]", "_", part) for part in parts)])


def dataset_keys(leaves: Iterable["MetadatasetLeaf"]) -> list[dg.AssetKey]:
    """Return the keys of datasets, each once."""
    return list(dict.fromkeys(dataset_key(dataset) for leaf in leaves for dataset in leaf.datasets))


def dataset_specs(leaves: Iterable["MetadatasetLeaf"], group: str) -> tuple[dg.AssetSpec, ...]:
    """Return an external asset for each dataset, except for assets of this package."""
    from dagster_dataops.streams.files.remote import is_url

    datasets = [dataset for leaf in leaves for dataset in leaf.datasets]
    unlisted = {dataset_key(dataset): dataset for dataset in datasets if not dataset.is_asset}
    return tuple(
        dg.AssetSpec(
            key,
            description=leaf.contents,
            group_name=group,
            kinds={"file"},
            metadata={
                URI: leaf.path if is_url(leaf.path) else f"file://{leaf.path}",
                NAMED_IN: f"{leaf.file}, line {leaf.line}",
            },
        )
        for key, leaf in unlisted.items()
    )


def report_datasets(context: StepContext, operator: Operator) -> dict[str, str]:
    """Report the datasets of a metadataset that changed since their last report.

    Returns:
        Tags for the result of the step: the versions of its datasets.
    """
    if not isinstance(operator, GivenStream):
        return {}
    tags = {}
    stages = operator.stream().stage.ordered()
    for about, source in [source for stage in stages for source in stage.dataset_sources()]:
        key = dataset_key(about)
        try:
            version = digest(source.identity())[:16]
            if not about.is_asset:
                _report(context, key, version, source)
        except DataOpsError as error:  # the result is valid without the version
            context.log.warning("%s has no data version: %s", about.path, error)
            continue
        tags[f"{INPUT_VERSION}/{key.to_user_string()}"] = version
    return tags


def _report(context: StepContext, key: dg.AssetKey, version: str, source: "CrudeSource") -> None:
    if reported_tags(context.instance, key).get(VERSION) != version:
        metadata = {ROW_COUNT: source.size()}
        tags = {VERSION: version}
        context.log_event(dg.AssetMaterialization(asset_key=key, metadata=metadata, tags=tags))
