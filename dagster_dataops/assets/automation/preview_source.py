"""The input of a preview of a whole pipeline: the first records of its source.

With partitions, they are the first records of one partition. The launch names the partition; by
default it is the last partition whose source exists.
"""

import inspect
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import dagster as dg

from dagster_dataops.assets.inputs.partitions import named, ordered
from dagster_dataops.assets.inputs.path_pattern import PathPattern, SourceFile
from dagster_dataops.assets.inputs.source_files import exists, source_file
from dagster_dataops.assets.inputs.step_inputs import StepInputs
from dagster_dataops.assets.planning.asset_plan import AssetPlan, SourceAsset
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline
from dagster_dataops.assets.steps.preview_step import preview_folder
from dagster_dataops.assets.steps.source_assets import Source
from dagster_dataops.checkpoints.folder.manifest import load_result
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.execution.runners.given_stream import is_stream, of_first, of_partition, opened
from dagster_dataops.execution.runners.stream_runner import stream_of

_NAMED: Final = 10
_PARTITION_TEXT: Final = "Key of the partition; by default the last one whose source exists."


@dataclass(frozen=True)
class PreviewSource:
    """The source of a pipeline, for previews."""

    source: Source
    origin: SourceAsset
    partitions_def: dg.PartitionsDefinition[str] | None

    @classmethod
    def of(cls, planned: PlannedPipeline, source: Source) -> Self:
        """Return the source of a planned pipeline."""
        return cls(source, planned.origin, planned.options.get("partitions_def"))

    def fields(self) -> dict[str, dg.Field]:
        """Return the field of the launchpad for the partition, if there are any."""
        if self.partitions_def is None:
            return {}
        return {"partition": dg.Field(str, is_required=False, description=_PARTITION_TEXT)}

    def partition(self, context: dg.OpExecutionContext, dataops: DataOpsResource) -> str | None:
        """Return the partition that the launch names, else the last one whose source exists.

        Without partitions, return ``None``.

        Raises:
            Failure: The partition is unknown, or no partition has a source yet.
        """
        if self.partitions_def is None:
            return None
        wanted = context.op_config.get("partition", "")
        known = self.partitions_def.get_partition_keys(dynamic_partitions_store=context.instance)
        keys = ordered(known, self.partitions_def)[::-1]
        if wanted in keys:
            return str(wanted)
        if wanted:
            text = f"there is no partition {wanted!r}; the last are {named(keys, _NAMED)}"
            raise dg.Failure(text, allow_retries=False)
        there = self._there(context, dataops)
        first = next((key for key in keys if there(key)), None)
        if first is None:
            text = f"no partition of {self.origin.key.to_user_string()} exists yet"
            raise dg.Failure(text, allow_retries=False)
        return first

    def _there(
        self, context: dg.OpExecutionContext, dataops: DataOpsResource
    ) -> Callable[[str], bool]:
        """Return a predicate: does a partition of the source exist?"""
        path = self.origin.path
        if isinstance(path, PathPattern):
            return lambda key: exists(source_file(path, key, dataops))
        if inspect.isroutine(self.source) or self.origin.plan is not None:
            return lambda _: True
        return context.instance.get_materialized_partitions(self.origin.key).__contains__

    def records(
        self,
        context: dg.OpExecutionContext,
        dataops: DataOpsResource,
        limit: int,
        partition: str | None,
    ) -> object:
        """Return the first ``limit`` records, or data that begins with them."""
        current = _Current(context, dataops, partition)
        if self.origin.plan is not None:
            return self._items(self.origin.plan, current, limit)
        if self.origin.path is None and inspect.isroutine(self.source):
            key = () if partition is None else (partition,)
            source = self.source(*key)
            items = opened(source, self.origin.key.path[-1]) if is_stream(source) else source
            return itertools.islice(items, limit)
        return current.data(self.origin.key, self.origin.path)

    def _items(self, plan: AssetPlan, current: "_Current", limit: int) -> object:
        """Return the first items of a stream over the current data of its inputs."""
        place = preview_folder(current.dataops.folder(self.origin.key.path, current.partition))
        operator = of_first(of_partition(plan.node.operator, current.partition), limit)
        with StepInputs(place, len(plan.inputs), current.context.run.run_id) as upstream:
            for key, source in plan.inputs:
                upstream.add(key, [current.data(key, source)])
            return list(itertools.islice(stream_of(operator, upstream.datasets), limit))


@dataclass(frozen=True)
class _Current:
    """The current data of assets, in one partition or without partitions."""

    context: dg.OpExecutionContext
    dataops: DataOpsResource
    partition: str | None

    def data(self, key: dg.AssetKey, path: object) -> object:
        """Return the file of an external asset, or the stored records of another asset.

        Results of `DataOpsIOManager` are read from their folders: Dagster cannot load them here,
        because it does not provide the resource that the IO manager needs.
        """
        if isinstance(path, SourceFile):
            file = source_file(path, self.partition, self.dataops)
            return file if isinstance(file, Path) else JsonlDataset.at(file)
        folder = self.dataops.folder(key.path, self.partition)
        return load_result(folder) if folder.as_published().result.exists() else self._loaded(key)

    def _loaded(self, key: dg.AssetKey) -> object:
        try:
            location = self.context.repository_def
        except Exception as error:  # Dagster's CheckError, which has no public name
            text = (
                f"loading the records of asset {key.to_user_string()} needs its code location, "
                "and execute_in_process has none; launch this job in the UI or with dg"
            )
            raise dg.Failure(text, allow_retries=False) from error
        return location.load_asset_value(
            key, instance=self.context.instance, partition_key=self.partition
        )
