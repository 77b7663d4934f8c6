"""ListedPipelineComponent: a pipeline whose partitions are the files of a bucket or folder."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import dagster as dg
from dagster.components import DefsStateConfig, DefsStateConfigArgs, ResolvedDefsStateConfig

from dagster_dataops.assets.components.component import OperatorPipelineComponent
from dagster_dataops.assets.components.scaffolder import ListedPipelineScaffolder
from dagster_dataops.assets.inputs.listed_files import listed_partitions
from dagster_dataops.assets.inputs.path_pattern import is_pattern
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.errors import ConfigurationError, DataOpsError, DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.url_forms import is_url

_VERSION: Final = 1  # of the state
_REFRESH: Final = "`dg utils refresh-defs-state`"


@dg.scaffold_with(ListedPipelineScaffolder)
@dataclass(kw_only=True)
class ListedPipelineComponent(OperatorPipelineComponent, dg.StateBackedComponent):
    """An `OperatorPipelineComponent` with a partition for each file that its source matches.

    The files are listed by `dg utils refresh-defs-state`, and kept as Dagster's state of
    definitions. Definitions load from it, without a network.

    Example:
        .. code-block:: yaml

            type: dagster_dataops.ListedPipelineComponent

            attributes:
              source: s3://bucket/inbox/{partition}.jsonl
              operators:
                - name: unique
                  operator: dedup.Exact
                  options: {input_key: text}
              resource: {root: "s3://bucket/results"}
              defs_state: {management_type: VERSIONED_STATE_STORAGE}
    """

    defs_state: ResolvedDefsStateConfig = field(
        default_factory=DefsStateConfigArgs.local_filesystem
    )

    @property
    @override
    def defs_state_config(self) -> DefsStateConfig:
        """How the state is kept. Its key has the source, unless ``defs_state`` has a key."""
        key = f"{type(self).__name__}[{self.source}]"
        return DefsStateConfig.from_args(self.defs_state, default_key=key)

    @override
    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of the pipeline, with the partitions of the state.

        Raises:
            DefsYamlError: There is no state, it is of another source, or a field is wrong; with
                file and line.
        """
        self._pattern()
        return dg.StateBackedComponent.build_defs(self, context)

    @override
    def write_state_to_path(self, state_path: Path) -> None:
        """List the files and write their partitions.

        Raises:
            DefsYamlError: The source has no files, cannot be listed, or is no pattern.
        """
        pattern = self._pattern()
        component: Any = self
        try:
            keys = listed_partitions(pattern, component.resource or DataOpsResource())
        except DataOpsError as error:
            raise self._place.at("source").error("source", error) from error
        state = {"version": _VERSION, "source": pattern, "partitions": keys}
        state_path.parent.mkdir(parents=True, exist_ok=True)
        state_path.write_text(json.dumps(state))

    @override
    def build_defs_from_state(
        self, context: dg.ComponentLoadContext, state_path: Path | None
    ) -> dg.Definitions:
        """Return the definitions of the pipeline with the partitions of a state.

        Raises:
            DefsYamlError: There is no state, or it is of another source.
        """
        partitions = dg.StaticPartitionsDefinition(self._listed(state_path))
        listed = replace(self, partitions_def=partitions)  # type: ignore[call-arg]
        listed.__dict__["_place"] = self._place
        return OperatorPipelineComponent.build_defs(listed, context)

    def _pattern(self) -> str:
        """Return the pattern of the source."""
        source, fields = self.source, self.__dict__
        if not isinstance(source, (str, Path)) or not is_pattern(str(source)):
            allowed = "a path or URL with {partition}, such as s3://bucket/inbox/{partition}.jsonl"
            raise self._wrong("source", source, allowed)
        for name in ("partitions_def", "new_files"):
            if fields.get(name) is not None:
                raise self._wrong(name, fields[name], "left out: the files are the partitions")
        return str(source)

    def _wrong(self, name: str, value: object, allowed: str) -> Exception:
        error = ConfigurationError(name, str(value), allowed)
        return self._place.at(name).error(name, error)

    def _listed(self, state_path: Path | None) -> list[str]:
        """Return the keys of the partitions that the state lists."""
        key, pattern = self.defs_state_config.key, str(self.source)
        if state_path is None:
            reason = f"the files of {pattern} were never listed: run {_REFRESH} (state {key!r})"
            raise self._unusable(reason)
        try:
            state = json.loads(state_path.read_text())
            version, source, keys = (state[name] for name in ("version", "source", "partitions"))
        except (ValueError, TypeError, KeyError) as error:
            reason = (
                f"the state {key!r} is damaged ({type(error).__name__}: {error}): run {_REFRESH}"
            )
            raise self._unusable(reason) from error
        if version != _VERSION:
            reason = f"the state {key!r} has version {version!r}, not {_VERSION}: run {_REFRESH}"
            raise self._unusable(reason)
        if source != pattern and (is_url(source) or is_url(pattern)):
            raise self._unusable(f"the state {key!r} lists {source}, not {pattern}: run {_REFRESH}")
        return list(keys)

    def _unusable(self, reason: str) -> Exception:
        return self._place.at("source").error("source", DefinitionError(reason))
