"""The input of a preview of a whole pipeline: the first records of its source.

With partitions, they are the first records of one partition. The launch names the partition; by
default it is the last partition whose source exists.
"""

import inspect
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from dagster_dataops.assets.inputs.partitions import named, ordered
from dagster_dataops.assets.inputs.path_pattern import PathPattern
from dagster_dataops.assets.inputs.source_files import exists, source_file
from dagster_dataops.assets.inputs.step_inputs import StepInputs
from dagster_dataops.assets.planning.asset_plan import AssetPlan, SourceAsset
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.steps.preview_step import preview_folder
from dagster_dataops.assets.steps.source_assets import Source
from dagster_dataops.checkpoints.folder.manifest import load_result
from dagster_dataops.execution.runners.given_stream import is_stream, of_first, of_partition, opened
from dagster_dataops.execution.runners.stream_runner import stream_of

_NAMED = 10


@dataclass(frozen=True)
class PreviewSource:
    """The source of a pipeline, for previews.

    Attributes:
        source: The source that the user gave.
        origin: The asset of the source.
        partitions_def: The partitions of the pipeline, if it has any.
    """

    source: Source
    origin: SourceAsset
    partitions_def: dg.PartitionsDefinition[str] | None

    def partition(
        self, context: dg.OpExecutionContext, dataops: DataOpsResource, wanted: str
    ) -> str | None:
        """Return the partition to preview; ``None`` without partitions.

        Args:
            context: The context of the op.
            dataops: The resource.
            wanted: The partition key from the launch; empty for the last partition whose source
                exists.

        Raises:
            Failure: The partition is unknown, or no partition has a source yet.
        """
        if self.partitions_def is None:
            return None
        known = self.partitions_def.get_partition_keys(dynamic_partitions_store=context.instance)
        keys = ordered(known, self.partitions_def)[::-1]
        if wanted in keys:
            return wanted
        if wanted:
            text = f"there is no partition {wanted!r}; the last are {named(keys, _NAMED)}"
            raise dg.Failure(text, allow_retries=False)
        there = self._there(context, dataops)
        found = next((key for key in keys if there(key)), None)
        if found is None:
            text = f"no partition of {self.origin.key.to_user_string()} exists yet"
            raise dg.Failure(text, allow_retries=False)
        return found

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
        """Return the first ``limit`` records, or data that begins with them.

        Results of `DataOpsIOManager` are read from their folders: Dagster cannot load them here,
        because it does not provide the resource that the IO manager needs.
        """
        if self.origin.plan is not None:
            return self._items(self.origin.plan, context, dataops, limit, partition)
        found = self._found(self.origin.path, partition, dataops)
        if found is not None:
            return found
        if inspect.isroutine(self.source):
            key = () if partition is None else (partition,)
            made = self.source(*key)
            items = opened(made, self.origin.key.path[-1]) if is_stream(made) else made
            return itertools.islice(items, limit)
        return self._stored(self.origin.key, context, dataops, partition)

    def _found(self, path: object, partition: str | None, dataops: DataOpsResource) -> Path | None:
        if not isinstance(path, (Path, PathPattern)):
            return None
        return source_file(path, partition, dataops)

    def _items(
        self,
        plan: AssetPlan,
        context: dg.OpExecutionContext,
        dataops: DataOpsResource,
        limit: int,
        partition: str | None,
    ) -> object:
        """Return the first items of a stream over the current data of its inputs."""
        place = preview_folder(dataops.folder(self.origin.key.path, partition))
        operator = of_first(of_partition(plan.node.operator, partition), limit)
        with StepInputs(place, len(plan.inputs), context.run.run_id) as upstream:
            for key, given in plan.inputs:
                found = self._found(given, partition, dataops)
                upstream.add(key, [found or self._stored(key, context, dataops, partition)])
            return list(itertools.islice(stream_of(operator, upstream.datasets), limit))

    def _stored(
        self,
        key: dg.AssetKey,
        context: dg.OpExecutionContext,
        dataops: DataOpsResource,
        partition: str | None,
    ) -> object:
        folder = dataops.folder(key.path, partition)
        if folder.result.exists():
            return load_result(folder)
        return self._loaded(key, context, partition)

    def _loaded(
        self, key: dg.AssetKey, context: dg.OpExecutionContext, partition: str | None
    ) -> object:
        try:
            location = context.repository_def
        except Exception as error:  # Dagster's CheckError, which has no public name
            text = (
                f"loading the records of asset {key.to_user_string()} needs its code location, "
                "and execute_in_process has none; launch this job in the UI or with dg"
            )
            raise dg.Failure(text, allow_retries=False) from error
        return location.load_asset_value(key, instance=context.instance, partition_key=partition)
