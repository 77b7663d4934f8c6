"""ExternalCall: what an asset asks of the process that makes it, through Dagster Pipes.

The process knows neither the instance nor the launch of the asset. All that a step takes from them
is in the extras of the Pipes session, under one name.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.runtime.asset_paths import folder_of
from dagster_dataops.assets.runtime.step_context import StepEvent
from dagster_dataops.assets.runtime.unreported_results import unreported_in
from dagster_dataops.checkpoints.folder.manifest import NodeFolder, published
from dagster_dataops.errors import ExternalRunError
from dagster_dataops.foundation.places.root import Root

EXTRAS: Final = "dagster_dataops"  # the name in the extras, and in custom messages
_TAGS: Final = "dagster_dataops/"  # the tags of a run that change what a step does


@dataclass(frozen=True, kw_only=True)
class ExternalCall:
    """What a step takes from its instance and its launch. All values are those of JSON.

    Attributes:
        root: The root of the results, as the asset knows it.
        step: The name of its op.
        config: The config of its op, as given at launch; ``None`` without any.
        tags: The tags of the run that change what a step does.
        checks: The checks that the step has selected: the path of the asset, and the name.
        partitions: The keys of the partitions of the run.
        dynamic_partitions: The keys of all dynamic partitions of the step and its inputs, by name.
        continued: The runs that the run continues.
        unreported: Results that a run published without an event: folder below the root, and run.
    """

    root: str
    step: str
    config: Any = None
    tags: Mapping[str, str] = field(default_factory=dict)
    checks: Sequence[tuple[Sequence[str], str]] = ()
    partitions: Sequence[str] = ()
    dynamic_partitions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    continued: Sequence[str] = ()
    unreported: Sequence[tuple[str, str]] = ()

    @classmethod
    def of(
        cls, context: dg.AssetExecutionContext, root: Root, continued: Collection[str]
    ) -> "ExternalCall":
        """Return the call of a step."""
        step = context.op_def.name
        checks = context.selected_asset_check_keys
        partitioned = context.has_partition_key or context.has_partition_key_range
        partitions = list(context.partition_keys) if partitioned else []
        launched: Any = context.run.run_config
        return cls(
            root=str(root),
            step=step,
            config=launched.get("ops", {}).get(step),
            tags={
                name: value for name, value in context.run.tags.items() if name.startswith(_TAGS)
            },
            checks=[(list(check.asset_key.path), check.name) for check in sorted(checks)],
            partitions=partitions,
            dynamic_partitions=_dynamic_keys(context),
            continued=sorted(continued),
            unreported=list(_unreported(context, root, partitions)),
        )

    @classmethod
    def received(cls, extras: Mapping[str, Any]) -> "ExternalCall | None":
        """Return the call in the extras of a session; ``None`` if another client started it.

        Raises:
            ExternalRunError: Another version of this package wrote it.
        """
        if EXTRAS not in extras:
            return None
        try:
            return cls(**extras[EXTRAS])
        except TypeError as error:
            reason = (
                f"the asset was launched by another version of dagster-dataops ({error}). Install "
                "the same version for the code location and for the external process"
            )
            raise ExternalRunError(reason) from None

    @property
    def extras(self) -> dict[str, Any]:
        """The extras of a Pipes session."""
        return {EXTRAS: asdict(self)}

    @property
    def check_keys(self) -> list[dg.AssetCheckKey]:
        """The keys of the checks."""
        return [dg.AssetCheckKey(dg.AssetKey(path), name) for path, name in self.checks]

    def checked(self, events: Iterator[StepEvent], root: Root) -> Iterator[StepEvent]:
        """Yield the events of the step, if it writes where the asset reads.

        Raises:
            ExternalRunError: The root of the results is another one.
            dg.Failure: The step failed. The asset that launched it has the policy of retries.
        """
        if str(root) != self.root:
            reason = (
                f"it writes to {root!s}, but the asset that launched it reads "
                f"{self.root}. Give both the same root: root= of DataOpsResource, or the "
                "environment variable DATAOPS_DATA_PROCESS_PATH"
            )
            raise dg.Failure(str(ExternalRunError(reason)), allow_retries=False)
        try:
            yield from events
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            raise dg.Failure(text, allow_retries=False) from error

    def is_unreported(self, root: Root, folder: NodeFolder, run: str) -> bool:
        """Return whether ``run`` published one of the results in ``folder`` without an event."""
        folders = folder.outputs.values() or [folder]
        known = {(name, by) for name, by in self.unreported}
        return any((_below(root, result), run) in known for result in folders)


def _below(root: Root, folder: NodeFolder) -> str:
    return folder.path.relative_to(root.path).as_posix()


def _dynamic_keys(context: dg.AssetExecutionContext) -> dict[str, list[str]]:
    """Return the keys of the dynamic partitions that a step makes or reads, by name."""
    names: set[str] = set()
    for spec in context.assets_def.specs:
        names.update(dynamic_names(spec.partitions_def))
    for name in context.assets_def.keys_by_input_name:
        with suppress(dg.DagsterInvariantViolationError):  # it has no partitions
            partitions = context.op_execution_context.asset_partitions_def_for_input(name)
            names.update(dynamic_names(partitions))
    instance = context.instance
    return {name: list(instance.get_dynamic_partitions(name)) for name in sorted(names)}


def dynamic_names(definition: dg.PartitionsDefinition | None) -> list[str]:
    """Return the names of the dynamic partitions in a definition."""
    if isinstance(definition, dg.DynamicPartitionsDefinition):
        return [definition.name] if definition.name else []
    if isinstance(definition, dg.MultiPartitionsDefinition):
        dimensions = definition.partitions_defs
        return [
            name for dimension in dimensions for name in dynamic_names(dimension.partitions_def)
        ]
    return []


def _unreported(
    context: dg.AssetExecutionContext, root: Root, partitions: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield folder and run of the results of the step that were published without an event."""
    for key in sorted(context.selected_asset_keys):
        partitioned = context.assets_def.specs_by_key[key].partitions_def is not None
        for partition in partitions if partitioned else [None]:
            folder = folder_of(root, key.path, partition)
            result = published(folder)
            run = result[1].run if result else ""
            if run and unreported_in(context, root, folder)(run):
                yield _below(root, folder), run


_NESTED: Final = "DATAOPS_EXTERNAL_RUN"  # set for the processes that an external process starts
_current: list[ExternalCall] = []


@contextmanager
def answering(call: ExternalCall | None) -> Iterator[None]:
    """Mark this process as the external process of a step; the call of another client is ``None``.

    Raises:
        ExternalRunError: It was started by an external process.
    """
    if os.environ.get(_NESTED):
        reason = (
            "this process was started by a process that runs the same asset already. In the body "
            "of the asset use dataops.run_by_pipes(context, client, ...): in an external process "
            "it runs the operators. Or give the command other definitions, without the client"
        )
        raise ExternalRunError(reason)
    os.environ[_NESTED] = "1"
    _current.extend([call] if call else [])
    try:
        yield
    finally:
        _current.clear()
        del os.environ[_NESTED]


def external_call() -> ExternalCall | None:
    """Return the call that this process answers; ``None`` in any other process."""
    return _current[-1] if _current else None
