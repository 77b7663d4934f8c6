"""DataOpsResource: the root folder of results, and defaults for running operators."""

import shlex
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from dagster_dataops.assets.runtime.asset_paths import folder_of
from dagster_dataops.assets.runtime.environment_values import (
    fault_of_option,
    from_environment,
    is_text,
    shape_of,
    written_values,
)
from dagster_dataops.assets.runtime.events import DataOpsEventIterator
from dagster_dataops.assets.runtime.external.external_call import ExternalCall, external_call
from dagster_dataops.assets.runtime.external.external_results import reported_results
from dagster_dataops.assets.runtime.step_context import (
    StepContext,
    Work,
    assigned,
    continued_runs,
)
from dagster_dataops.assets.runtime.termination import ended_by_interrupts
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.resume.resume_policy import ChosenRecords, ResumePolicy
from dagster_dataops.configuration import config, format_setting, input_object, root_setting
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.opening import FORMS
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.foundation.places.url_forms import ObjectUrl, folder_setting
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.definition.operator import Operator, reconfigured
from dagster_dataops.operators.options.settings import ExecutionSettings
from dagster_dataops.operators.options.signature import nearest

if TYPE_CHECKING:
    from dagster_dataops.execution.run_report import RunContext, RunReport

_CLIENTS: Final = 'give clients to build_definitions(clients={"default": LLMResource(...)})'


def refuse_unknown(resource: type[BaseModel], fields: Any) -> Any:
    """Return the arguments of a resource; refuse unknown ones, which Dagster would drop.

    Raises:
        TypeError: The resource has no field with such a name.
    """
    known = {name for key, field in resource.model_fields.items() for name in (key, field.alias)}
    for name in fields:
        if name not in known:
            names = sorted(filter(None, known))
            near = nearest(name, names)
            hint = f"did you mean {near!r}?" if near else f"its fields: {', '.join(names)}"
            if name == "clients" and issubclass(resource, DataOpsResource):
                hint = _CLIENTS
            msg = f"{resource.__name__}() got an unexpected keyword argument {name!r}; {hint}"
            raise TypeError(msg)
    return fields


def is_resource(value: object) -> bool:
    """Return whether a value is a resource, which gives the value when a run starts."""
    return isinstance(value, (dg.ConfigurableResource, dg.ResourceDefinition))


class DataOpsResource(dg.ConfigurableResource[None]):
    """Runs operators in assets and ops, with results and checkpoints below one root folder.

    Clients of operators given as `build_definitions(clients={"judge": ...})` become fields of
    a subclass: operators get each field that a subclass adds by its name, as
    `context.clients["judge"]` for the field `judge`.

    The field `cluster`, such as `RayCluster`, holds the machines that operators in process mode
    run on. It may be a resource of dagster-ray, which Dagster then starts and ends with the step:
    one agent runs on each of its nodes. Left empty: `config.cluster`, else this machine.
    """

    model_config = ConfigDict(hide_input_in_errors=True)  # a value may be a secret

    root: str | None = Field(
        default=None,
        description=(
            "Folder of all results and checkpoints; every process of the deployment must reach "
            "it. Or the URL of an object store, such as s3://bucket/prefix. Left empty: "
            "environment DATAOPS_DATA_PROCESS_PATH, else ./data_pipeline_res."
        ),
    )
    result_format: str | None = Field(
        default=None,
        description=(
            "Form of the files of results: jsonl, or jsonl.zst, which is compressed and needs the "
            "extra zstd. Both are the same result. Left empty: environment DATAOPS_RESULT_FORMAT, "
            "else jsonl."
        ),
    )
    # They may hold secrets: a dependency is in no launchpad, and in no stored config of a run.
    storage_options: dg.ResourceDependency[Any] = Field(
        default={},  # type: ignore[arg-type]
        repr=False,
        description=(
            "Options of the object stores of root and source over those of the environment, such "
            "as endpoint, region, access_key_id and secret_access_key. Give secrets as "
            "dg.EnvVar(...): they are read when a run starts. A launch cannot change them."
        ),
    )
    url_options: dg.ResourceDependency[Any] = Field(
        default={},  # type: ignore[arg-type]
        repr=False,
        description=(
            "Arguments of fsspec's file systems, such as logins, by the beginning of URLs. They "
            "hold for all that a run reads by URL. Give secrets as dg.EnvVar(...): they are read "
            "when a step starts. A launch cannot change them. Over those of config.url_options."
        ),
    )
    file_cache: str | None = Field(
        default=None,
        description=(
            "Folder of each machine for copies of files that records name by URL, or in a shard or "
            "an object store. Left empty: environment DATAOPS_FILE_CACHE, else none are kept."
        ),
    )
    file_cache_gb: float | None = Field(
        default=None,
        ge=0.0,
        description=(
            "The largest size of all files in file_cache, in GB. The least recently used files "
            "are deleted. Left empty: environment DATAOPS_FILE_CACHE_GB, else 50."
        ),
    )
    max_workers: int | None = Field(
        default=None,
        ge=0,
        description=(
            "Worker processes or concurrent calls on this machine of operators that do not set "
            "them. "
            "Left empty: for processes the number of cores, divided among the steps that run on "
            "this machine; for calls 5 per core, at least 32."
        ),
    )
    flush_seconds: float = Field(
        default=1.0,
        ge=0.0,
        description="Seconds of finished work that a power failure may cost. A kill costs less.",
    )
    lock_seconds: float = Field(
        default=15.0,
        ge=0.0,
        description="Seconds to wait for an earlier attempt that is still ending.",
    )
    keep_versions: int | None = Field(
        default=None,
        ge=0,
        description=(
            "Number of earlier results that are kept beside the published one, to compare and "
            "restore them, by operators that do not set it. Left empty: none."
        ),
    )

    whole_result_mb: float | None = Field(
        default=None,
        ge=0.0,
        description=(
            "The largest result of a record operator on an object store, in MB, that is written as "
            "one object, which other programs read. The lines of a larger one stay in the objects "
            "in which they were sent. Left empty: environment DATAOPS_WHOLE_RESULT_MB, else 16."
        ),
    )

    view_url: str | None = Field(
        default=None,
        description=(
            "Address at which a browser reaches the page of `python -m dagster_dataops view ROOT`, "
            "such as http://localhost:8765. Then the metadata of each result have a link to its "
            "records. Left empty: no link."
        ),
    )

    cluster: dg.ResourceDependency[Any] = None  # type: ignore[assignment]

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, fields: Any) -> Any:
        return refuse_unknown(cls, fields)

    @field_validator("storage_options", mode="before")
    @classmethod
    def _options_of_stores(cls, options: Any) -> Any:
        allowed = (
            "storage_options maps names of options to texts or dg.EnvVar(...), which may be "
            'written as {"env": "NAME"}'
        )
        if is_resource(options):
            return options
        if not isinstance(options, Mapping):
            msg = f"{allowed}; found {shape_of(options)}"
            raise ValueError(msg)  # noqa: TRY004 - pydantic reports it
        for name, value in options.items():
            if not (name and isinstance(name, str) and is_text(value)):
                msg = f"{allowed}; found {shape_of(value)} for {name!r}"
                raise ValueError(msg)
        return dict(options)

    @field_validator("url_options", mode="before")
    @classmethod
    def _options_of_urls(cls, options: Any) -> Any:
        if is_resource(options):
            return options
        allowed = (
            "url_options maps beginnings of URLs to mappings of arguments: texts, numbers, lists, "
            'mappings or dg.EnvVar(...), which may be written as {"env": "NAME"}'
        )
        if not isinstance(options, Mapping):
            msg = f"{allowed}; found {shape_of(options)}"
            raise ValueError(msg)  # noqa: TRY004 - pydantic reports it
        for prefix, arguments in options.items():
            is_named = bool(prefix) and isinstance(prefix, str)
            of_mapping = is_named and isinstance(arguments, Mapping) and not is_text(arguments)
            fault = fault_of_option(arguments) if of_mapping else shape_of(arguments)
            if fault:
                msg = f"{allowed}; found {fault} for {prefix!r}"
                raise ValueError(msg)
        return dict(options)

    @override
    def __hash__(self) -> int:
        """Return a hash, as of other resources; that of the base class refuses dicts."""
        fields = (getattr(self, name) for name in type(self).model_fields)
        return hash(tuple(field for field in fields if not isinstance(field, dict)))

    @property
    def root_path(self) -> Path:
        """The root as an absolute path; of an object store the folder of the working copy."""
        return self.results_root.path

    @property
    def results_root(self) -> Root:
        """The folder `root_path`, and the bucket of which it is a working copy."""
        return (
            root_setting("root", self.root, self._store_options)
            if self.root
            else config.results_root()
        )

    @property
    def _store_options(self) -> dict[str, str]:
        options = self._mapping("storage_options").items()  # one may have the name "env"
        values = {
            name: from_environment(f"storage_options.{name}", value) for name, value in options
        }
        return {**config.storage_options, **values}

    def _mapping(self, name: str) -> dict[str, Any]:
        """Return the mapping of a field, unless it is a resource that Dagster has not set up."""
        value = getattr(self, name)
        if is_resource(value):
            allowed = "a mapping here: a resource gives one only in a run that has it as a resource"
            raise ConfigurationError(name, type(value).__name__, allowed)
        return dict(value)

    @override
    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Any]:
        """Yield the resource. While a step has it, its settings of files hold in the process."""
        # A sensor reads no files, and may lack the variables with the secrets of runs.
        settings = self._file_settings() if context.run is not None else {}
        with config.of_run(settings), super().yield_for_execution(context) as resource:
            yield resource

    def _file_settings(self) -> dict[str, Any]:
        """Return the settings of `config` for files, as the fields set them."""
        return {
            "url_options": from_environment("url_options", self._mapping("url_options")),
            "file_cache": folder_setting("file_cache", self.file_cache)
            if self.file_cache
            else None,
            "file_cache_gb": self.file_cache_gb,
        }

    def location(self, file: Path | ObjectUrl) -> Location:
        """Return where a file is."""
        return file if isinstance(file, Path) else input_object(file.url, self._store_options)

    @property
    def defined_root(self) -> Root | None:
        """The root if it is set in the definitions; a launch may still change it.

        ``None`` if every process reads it from its environment.
        """
        if not self.root or isinstance(self.root, dg.EnvVar):
            return None
        # A code server may lack the variables with the secrets of its runs.
        written = {} if is_resource(self.storage_options) else self.storage_options
        options = {**config.storage_options, **written_values(written)}
        return root_setting("root", self.root, options)

    @property
    def defined_form(self) -> str:
        """The form that the definitions set for files of results; a launch may change it."""
        form = self.result_format
        return form if form in FORMS else config.result_format

    @property
    def clients(self) -> dict[str, object]:
        """The clients of operators by name: the fields of a subclass over ``config.clients``."""
        added = type(self).model_fields.keys() - DataOpsResource.model_fields.keys()
        clients = {name: getattr(self, name) for name in added}
        # The client of an `LLMResource`: worker processes do not import Dagster.
        clients = {
            name: getattr(client, "model_client", client) for name, client in clients.items()
        }
        return {**config.clients, **clients}

    def folder(self, key: Sequence[str], partition: str | None = None) -> NodeFolder:
        """Return the folder of an asset, a partition or an op node."""
        return folder_of(self.results_root, key, partition).in_form(self.result_form)

    @property
    def result_form(self) -> str:
        """The form of the files of results that steps write.

        Raises:
            ConfigurationError: `result_format` is none.
            MissingExtraError: The package for it is not installed.
        """
        if self.result_format:
            return format_setting("result_format", self.result_format)
        return config.result_format

    def run(
        self, context: StepContext, work: Work | None = None
    ) -> DataOpsEventIterator[dg.MaterializeResult[JsonlDataset] | dg.AssetCheckResult]:
        """Run the operators of a step and yield the events of each as it finishes.

        Args:
            context: The context of the step. In assets of `dataops_assets` it already has ``work``;
                any other asset or op passes ``work``. An op gets materializations.
            work: The result of `plan_pipeline`.
        """
        chosen = assigned(context) if work is None else work
        events = chosen.run(context, self)
        call = external_call()
        return DataOpsEventIterator(
            call.checked(events, self.results_root) if call else events, context
        )

    def run_by_pipes(
        self, context: dg.AssetExecutionContext, client: dg.PipesClient, **arguments: Any
    ) -> Iterator[dg.MaterializeResult[Any] | dg.AssetCheckResult]:
        """Run the operators of a step in another process, and yield their events as `run` does.

        The process runs the command ``python -m dagster_dataops run -m MODULE`` with the same
        definitions. There, this method is `run`. Its log lines are those of the step. The events
        come when it has ended.

        Args:
            context: The context of the step.
            client: A client of Dagster Pipes, such as ``dg.PipesSubprocessClient``.
            **arguments: Arguments of its ``run``: ``command``, and what else it takes.

        Example:
            .. code-block:: python

                @dataops_assets(ppl, source="docs.jsonl")
                def docs(context, dataops: DataOpsResource, pipes: dg.PipesSubprocessClient):
                    command = [sys.executable, "-m", "dagster_dataops", "run", "-m", "my.defs"]
                    yield from dataops.run_by_pipes(context, pipes, command=command)

        Raises:
            ExternalRunError: The process ended without the events of the operators.
            dg.Failure: The run is being terminated, and the step has a retry policy.
        """
        if external_call() is not None:
            yield from self.run(context)
            return
        with ended_by_interrupts(context):
            call = ExternalCall.of(context, self.results_root, continued_runs(context))
            keywords = {**arguments, "extras": {**arguments.get("extras", {}), **call.extras}}
            yield from reported_results(context, client.run(context=context, **keywords))

    def run_operator(
        self,
        context: StepContext,
        operator: Operator,
        inputs: Sequence[JsonlDataset],
        folder: NodeFolder,
        resume: ResumePolicy | ChosenRecords = ResumePolicy.AUTO,
    ) -> "RunReport":
        """Run one operator in a step, resuming an unfinished attempt.

        Args:
            context: The context of the asset or op.
            operator: The operator.
            inputs: Its datasets, in order.
            folder: The folder of the result, from `folder`.
            resume: Whether finished records of an unfinished attempt are reused.

        Raises:
            DataOpsError: As `OperatorExecutor.run`.
            dg.Failure: The run is being terminated, and the step has a retry policy.
        """
        from dagster_dataops.assets.runtime.attempt_context import attempt_context
        from dagster_dataops.execution.executor import OperatorExecutor  # the engine; loaded by use

        attempt = attempt_context(self, context, resume, folder)
        # Dagster may not have set up the resource: a unit test may pass it to the function.
        files = config.of_run(self._file_settings())
        with files, ended_by_interrupts(context), self._settings_of(operator, attempt) as fair:
            report = OperatorExecutor(attempt).run(reconfigured(operator, {}, fair), inputs, folder)
        _log_view_command(context, attempt.run, str(self.results_root))
        if report.error_path is not None:
            failed, rows_in = report.manifest.failed, report.manifest.rows_in
            where = f"they are in {folder.located(report.error_path)}"
            text = f"{folder.name}: {failed:,} of {counted(rows_in, 'records')} failed; {where}"
            context.log.warning(text)
        return report

    def view_of(self, result: Path) -> str | None:
        """Return the address of the page with the records of a result, from ``view_url``.

        Args:
            result: The folder of the result, or of one of the outputs of a node.
        """
        if not self.view_url or not result.is_relative_to(self.root_path):
            return None
        key = quote(result.relative_to(self.root_path).as_posix())
        return f"{self.view_url.rstrip('/')}/records/{key}"

    @contextmanager
    def _settings_of(
        self, operator: Operator, attempt: "RunContext"
    ) -> Iterator[ExecutionSettings]:
        """Yield the settings of an operator in a step; on a cluster, they are its own."""
        from dagster_dataops.assets.runtime.core_sharing import fair_settings
        from dagster_dataops.execution.workplaces.workplace import cluster_for

        invocation = operator.__dataops__
        settings = invocation.settings.over(ExecutionSettings(keep_versions=self.keep_versions))
        if cluster_for(invocation.resolved, attempt.cluster):
            yield settings
            return
        defaults = ExecutionSettings(max_workers=self.max_workers or None)
        with fair_settings(operator, settings.over(defaults)) as fair:
            yield fair


_MOST_LOGGED: Final = 64  # runs; a process has few at once
_logged: Final[deque[tuple[str, str]]] = deque(maxlen=_MOST_LOGGED)  # the last runs and their roots


def _log_view_command(context: StepContext, run: str, root: str) -> None:
    """Log the command that shows the records, once in a run and process."""
    if (run, root) not in _logged:
        _logged.append((run, root))
        text = f"see the records: python -m dagster_dataops view {shlex.quote(root)}"
        context.log.info(text)


def resource_of(context: Any, resource_key: str) -> DataOpsResource:
    """Return the resource of a step or sensor that requires it, or the IO manager that has it.

    Raises:
        ConfigurationError: There is neither.
    """
    resource: DataOpsResource | None = getattr(context.resources, resource_key, None)
    if resource is None:
        key = io_manager_key(resource_key)
        manager = getattr(context.resources, key, None)
        resource = getattr(manager, "dataops", None)
        if resource is None:
            allowed = (
                f"a DataOpsIOManager, through which a step has the resource {resource_key!r}; name "
                "another IO manager in the metadata dagster/io_manager_key of the assets. In a "
                "unit test, give the resource by its key"
            )
            raise ConfigurationError(key, type(manager).__qualname__, allowed)
    return resource


def io_manager_key(resource_key: str) -> str:
    """Return the key of the IO manager that belongs to a resource."""
    return f"{resource_key}_io"
