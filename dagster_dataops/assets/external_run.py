"""Run assets of given definitions in this process, also for an asset that launched it by Pipes."""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.loaded_definitions import loaded_definitions
from dagster_dataops.assets.metadata.metadata_keys import DESCRIPTION, OUTPUT
from dagster_dataops.assets.metadata.pipes_metadata import pipes_metadata
from dagster_dataops.assets.runtime.external.external_call import (
    ExternalCall,
    answering,
    dynamic_names,
)
from dagster_dataops.assets.runtime.external.external_results import messages_of
from dagster_dataops.checkpoints.resume.record_condition import RecordCondition
from dagster_dataops.errors import (
    ConfigurationError,
    ExternalRunError,
    MissingExtraError,
    RunStoppedError,
)
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted

_JOB: Final = "dataops_run"
_PIPES: Final = "DAGSTER_PIPES_CONTEXT"  # set in a process that a client of Pipes has started
_RANGE: Final = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
_ROWS: Final = ("dagster/row_count", "dagster/partition_row_count")
_VERSION: Final = "dagster/data_version"
_REDO: Final = "--redo-records"


def run_assets(
    modules: Sequence[str],
    files: Sequence[str],
    names: Sequence[str] = (),
    *,
    partition: str | None = None,
    checks: bool = False,
    redo_records: str | None = None,
) -> str:
    """Materialize assets in this process, and return what was made, in words.

    If a client of Dagster Pipes has started the process, log lines, materializations and checks
    are reported to the asset that it was started for.

    Args:
        modules: Modules with definitions.
        files: Python files with definitions.
        names: Keys of the assets. By default those of the step that started the process, else all.
        partition: The partition; by default that of the step.
        checks: Whether to run and report the checks of the assets, if a client without
            `DataOpsResource.run_by_pipes` has started the process. Its asset must declare them.
        redo_records: A condition that chooses the records of one asset to process again, as
            ``resume: {records: CONDITION}`` does in the launchpad; ``None`` to run as usual.

    Raises:
        ConfigurationError: There are no definitions, or they have no such asset; or the records
            of several assets, or of one that is no operator, are to be chosen.
        ConditionSyntaxError: The condition is malformed.
        ExternalRunError: The step and the definitions do not fit together.
        MissingExtraError: A client has started the process, and ``dagster-pipes`` is missing.
        RunStoppedError: The run was interrupted.
        Exception: The error of the operator that failed.
    """
    if redo_records is not None:
        RecordCondition.parse(redo_records)
    if not os.environ.get(_PIPES):
        definitions = dg.Definitions.merge(*loaded_definitions(modules, files))
        keys = _named(definitions, names) or _materializable(definitions)
        partitions = [partition] if partition else []
        run = _AssetsRun(definitions, keys, partitions=partitions, redo_records=redo_records)
        with _instance() as instance:
            return _said(run.execute(instance))
    with _opened() as pipes:
        call = ExternalCall.received(pipes.extras)
        with answering(call), dg.DagsterInstance.ephemeral() as instance:
            definitions = dg.Definitions.merge(*loaded_definitions(modules, files))
            keys = _named(definitions, names) or _wanted(definitions, pipes)
            chosen = [partition] if partition else _partitions_of(pipes, call)
            asked = call.check_keys if call else None if checks else []
            run = _AssetsRun(
                definitions, keys, asked, chosen, pipes.log, pipes.run_id, call, redo_records
            )
            result = run.execute(instance)
        _report(pipes, call, result, keys)
    return _said(result)


@contextmanager
def _opened() -> Iterator[Any]:
    """Yield the context of Dagster Pipes."""
    try:
        from dagster_pipes import open_dagster_pipes
    except ImportError:
        raise MissingExtraError("a process that Dagster Pipes has started", "pipes") from None
    with open_dagster_pipes() as pipes:
        yield pipes


def _instance() -> dg.DagsterInstance:
    known = os.environ.get("DAGSTER_HOME")
    return dg.DagsterInstance.get() if known else dg.DagsterInstance.ephemeral()


def _materializable(definitions: dg.Definitions) -> list[dg.AssetKey]:
    graph = definitions.resolve_asset_graph()
    return sorted(key for key in graph.get_all_asset_keys() if graph.get(key).is_materializable)


def _named(definitions: dg.Definitions, names: Sequence[str]) -> list[dg.AssetKey]:
    """Return the keys of named assets."""
    known = _materializable(definitions)
    keys = [dg.AssetKey.from_user_string(name) for name in names]
    for key in keys:
        if key not in known:
            raise ConfigurationError("ASSET", key.to_user_string(), f"one of: {_listed(known)}")
    return keys


def _wanted(definitions: dg.Definitions, pipes: Any) -> list[dg.AssetKey]:
    """Return the keys of the assets of the step that started this process."""
    known = _materializable(definitions)
    keys = list(_keys_of(pipes))
    missing = [key for key in keys if key not in known]
    if missing or not keys:
        what = f"makes {_listed(missing)}" if missing else "makes no assets"
        reason = (
            f"the step that started this process {what}, and the definitions here have "
            f"{_listed(known)}. Name the assets to make behind the command: the last one is "
            "reported to the asset of the step"
        )
        raise ExternalRunError(reason)
    return keys


def _keys_of(pipes: Any) -> dict[dg.AssetKey, str]:
    """Return the keys of the step's assets, with the texts that name them in Pipes."""
    from dagster_pipes import to_asset_key_path

    names = pipes.asset_keys if pipes.is_asset_step else ()
    return {dg.AssetKey(to_asset_key_path(name)): name for name in names}


def _partitions_of(pipes: Any, call: ExternalCall | None) -> Sequence[str]:
    if call is not None:
        return call.partitions
    return [pipes.partition_key] if pipes.is_partition_step else []


def _listed(keys: Sequence[dg.AssetKey]) -> str:
    return ", ".join(key.to_user_string() for key in keys) or "no assets"


@dataclass(frozen=True)
class _AssetsRun:
    """A run of assets in this process.

    Without ``checks``, all checks of the assets run; without ``log``, Dagster's logger writes;
    without ``run_id``, the run has a new id; without ``call``, no step has started this process;
    without ``redo_records``, no records are chosen.
    """

    definitions: dg.Definitions
    keys: Sequence[dg.AssetKey]
    checks: Sequence[dg.AssetCheckKey] | None = None
    partitions: Sequence[str] = ()
    log: logging.Logger | None = None
    run_id: str | None = None
    call: ExternalCall | None = field(default=None, repr=False)
    redo_records: str | None = None

    def execute(self, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
        """Materialize the assets.

        Raises:
            RunStoppedError: The run was interrupted.
            Exception: The error of the operator that failed.
        """
        selection: dg.AssetSelection = dg.AssetSelection.assets(*self.keys)
        if self.checks is not None:
            selection = selection.without_checks() | dg.AssetSelection.checks(*self.checks)
        job = dg.define_asset_job(_JOB, selection, executor_def=dg.in_process_executor)
        loggers = {_JOB: _forwarding(self.log)} if self.log else {}
        added = dg.Definitions(jobs=[job], loggers=loggers)
        resolved = dg.Definitions.merge(self.definitions, added).resolve_job_def(_JOB)
        config = self._config(resolved)
        self._know_partitions(instance)
        partition = self.partitions[0] if len(self.partitions) == 1 else None
        try:
            return resolved.execute_in_process(
                config, instance, partition, run_id=self.run_id, tags=self._tags()
            )
        except dg.Failure as failure:
            raise failure.__cause__ or failure from None
        except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
            raise RunStoppedError(_listed(self.keys), "it was interrupted") from None

    def _config(self, job: dg.JobDefinition) -> dict[str, Any]:
        """Return the configuration of the launch."""
        config: dict[str, Any] = {"loggers": {_JOB: {}}} if self.log else {}
        if self.call is not None and self.call.config is not None:
            config["ops"] = {self.call.step: self.call.config}
        if self.redo_records is None:
            return config
        if self.call is not None:
            allowed = "left out here: choose the records in the launch of the asset that started"
            raise ConfigurationError(_REDO, self.redo_records, f"{allowed} this process")
        return self._redoing(job, config, {"resume": {"records": self.redo_records}})

    def _redoing(
        self, job: dg.JobDefinition, config: Mapping[str, Any], chosen: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the configuration that sets ``chosen`` for the operator of the assets."""
        nodes = {self._step_and_node(key) for key in self.keys}
        if len(nodes) > 1:
            allowed = f"used with one ASSET, whose records are chosen, not with {len(nodes)}"
            raise ConfigurationError(_REDO, self.redo_records, f"{allowed}: {_listed(self.keys)}")
        ((step, node),) = nodes
        for values in (chosen, {node: chosen}):  # of one operator, and of a pipeline in one step
            redoing = _with_op(config, step, values)
            any_config = _with_op(config, step, {**values, _REDO: ""})  # of an op that checks none
            if _is_valid(job, redoing) and not _is_valid(job, any_config):
                return redoing
        allowed = f"used with an asset of an operator, and {_listed(self.keys)} has no `resume`"
        raise ConfigurationError(_REDO, self.redo_records, allowed)

    def _step_and_node(self, key: dg.AssetKey) -> tuple[str, str]:
        """Return the op of an asset, and the name of its node."""
        definition = self.definitions.resolve_assets_def(key)
        is_output = OUTPUT in definition.get_asset_spec(key).metadata
        return definition.node_def.name, key.path[:-1][-1] if is_output else key.path[-1]

    def _tags(self) -> dict[str, str]:
        tags = dict(self.call.tags) if self.call else {}
        if len(self.partitions) > 1:
            tags |= dict(zip(_RANGE, (self.partitions[0], self.partitions[-1]), strict=True))
        return tags

    def _know_partitions(self, instance: dg.DagsterInstance) -> None:
        """Add dynamic partitions to an instance that is new."""
        if not instance.is_ephemeral:
            return
        known = dict(self.call.dynamic_partitions) if self.call else {}
        graph = self.definitions.resolve_asset_graph()
        for key in self.keys:
            definition = graph.get(key).partitions_def
            for above in (key, *graph.get(key).parent_keys):
                for name in dynamic_names(graph.get(above).partitions_def):
                    if name not in known and isinstance(definition, dg.DynamicPartitionsDefinition):
                        known[name] = self.partitions
                    if name not in known:
                        raise ExternalRunError(_unknown(name, above))
        for name, partitions in known.items():
            instance.add_dynamic_partitions(name, list(partitions))


def _with_op(config: Mapping[str, Any], op: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {**config, "ops": {op: {"config": values}}}


def _is_valid(job: dg.JobDefinition, config: Mapping[str, Any]) -> bool:
    try:
        dg.validate_run_config(job, config)
    except dg.DagsterInvalidConfigError:
        return False
    return True


def _unknown(name: str, key: dg.AssetKey) -> str:
    return (
        f"{key.to_user_string()} has the dynamic partitions {name!r}, whose keys only the instance "
        "of the deployment knows. Start this process by dataops.run_by_pipes(context, client, ...) "
        "in the body of the asset, which sends them"
    )


class _Forwarding(logging.Handler):
    """Hands the lines that steps log to another logger, without the events of Dagster."""

    def __init__(self, log: logging.Logger) -> None:
        super().__init__()
        self._log = log

    @override
    def emit(self, record: logging.LogRecord) -> None:
        known: Mapping[str, Any] = getattr(record, "dagster_meta", None) or {}
        if known.get("dagster_event") is None:
            self._log.log(record.levelno, "%s", known.get("orig_message") or record.getMessage())


def _forwarding(log: logging.Logger) -> dg.LoggerDefinition:
    @dg.logger
    def logger_of(_: Any) -> logging.Logger:
        logger = logging.Logger(_JOB, logging.INFO)  # noqa: LOG001 - of this run alone
        logger.addHandler(_Forwarding(log))
        return logger

    return logger_of


def _report(
    pipes: Any,
    call: ExternalCall | None,
    result: dg.ExecuteInProcessResult,
    keys: Sequence[dg.AssetKey],
) -> None:
    """Report the events of a run to the step that started this process."""
    materializations = [
        event.step_materialization_data.materialization for event in _events(result)
    ]
    checks = result.get_asset_check_evaluations()
    if call is not None:
        for message in messages_of(materializations, checks):
            pipes.report_custom_message(message)
    else:
        _report_each(pipes, materializations, checks, keys)


def _report_each(
    pipes: Any,
    materializations: Iterable[dg.AssetMaterialization],
    checks: Iterable[dg.AssetCheckEvaluation],
    keys: Sequence[dg.AssetKey],
) -> None:
    """Report events as any client of Dagster Pipes takes them."""
    names = _keys_of(pipes)
    if len(names) == 1 and keys[-1] not in names:  # an asset with another key than here
        names = {keys[-1]: next(iter(names.values()))}
    for event in materializations:
        if event.asset_key in names:
            pipes.report_asset_materialization(
                pipes_metadata(event.metadata),
                (event.tags or {}).get(_VERSION),
                names[event.asset_key],
            )
    for check in checks:
        if check.asset_key in names:
            metadata = pipes_metadata(check.metadata)
            if check.description:
                metadata[DESCRIPTION] = check.description
            pipes.report_asset_check(
                check.check_name,
                check.passed,
                check.severity.value,
                metadata,
                names[check.asset_key],
            )


def _events(result: dg.ExecuteInProcessResult) -> Sequence[Any]:
    return result.get_asset_materialization_events()


def _said(result: dg.ExecuteInProcessResult) -> str:
    """Return a line for each asset that was made."""
    lines = []
    for event in _events(result):
        materialization = event.step_materialization_data.materialization
        rows = [
            materialization.metadata[name].value
            for name in _ROWS
            if name in materialization.metadata
        ]
        what = f": {counted(rows[0], 'records')}" if rows else ""
        part = f" {materialization.partition}" if materialization.partition else ""
        lines.append(f"{materialization.asset_key.to_user_string()}{part}{what}")
    return "\n".join(lines) or "no asset was made"
