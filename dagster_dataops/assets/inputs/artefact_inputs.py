"""Artefacts that a step takes as options, from the folders of their assets."""

from collections.abc import Mapping

import dagster as dg

from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.checkpoints.folder.manifest import NodeFolder, load_artefact
from dagster_dataops.errors import DefinitionError
from dagster_dataops.operators.definition.operator import Operator, with_artefacts


def folder_of_artefact(
    dataops: DataOpsResource, spec: dg.AssetSpec, partition: str | None
) -> NodeFolder:
    """Return the folder of an artefact; that of the step's partition if it has partitions."""
    return dataops.folder(spec.key.path, None if spec.partitions_def is None else partition)


def with_loaded(name: str, operator: Operator, folders: Mapping[str, NodeFolder]) -> Operator:
    """Return the operator with the current artefacts as its options.

    Raises:
        ResultMissingError: An artefact was not published, or was changed since.
        Failure: The operator refuses its options; Dagster does not retry.
    """
    paths = {node: load_artefact(folder).path for node, folder in folders.items()}
    try:
        return with_artefacts(operator, paths)
    except DefinitionError as error:
        raise dg.Failure(f"{name}: {error}", allow_retries=False) from error
