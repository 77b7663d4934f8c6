"""CheckTranslation: `DataOpsTranslator.get_asset_check_spec`, and what it may return.

Dagster matches results to checks by name. So what is returned is checked when definitions load, and
results are made with the returned name and severity.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg

from dagster_dataops.assets.checks.check_partitions import with_partitions
from dagster_dataops.assets.checks.declared_check import NAMES, DeclaredCheck, is_name
from dagster_dataops.assets.checks.severity import severity_in, severity_of
from dagster_dataops.assets.metadata.metadata_keys import SEVERITY
from dagster_dataops.assets.planning.translator import DataOpsCheckData, DataOpsTranslator
from dagster_dataops.errors import ConfigurationError, PipelineDefinitionError
from dagster_dataops.pipelines.graph.operator_node import OperatorNode


@dataclass(frozen=True, slots=True)
class CheckTranslation:
    """The checks of the assets of one pipeline, as its translator wants them.

    ``translator`` is ``None`` if it leaves checks as they are.
    """

    pipeline: str
    translator: DataOpsTranslator | None = None

    @classmethod
    def of(cls, pipeline: str, translator: DataOpsTranslator | None) -> "CheckTranslation":
        """Return the translation by a translator; the default one changes nothing."""
        hook = getattr(translator, "get_asset_check_spec", None)
        same = getattr(hook, "__func__", None) is DataOpsTranslator.get_asset_check_spec
        return cls(pipeline, None if hook is None or same else translator)

    def spec(
        self,
        default: dg.AssetCheckSpec,
        partitions_def: dg.PartitionsDefinition | None,
        node: OperatorNode | None,
        *,
        output: str = "",
        severity: dg.AssetCheckSeverity | None = None,
        declared: bool = False,
    ) -> dg.AssetCheckSpec:
        """Return the spec of a check, with partitions if the check has any.

        ``severity`` is that of a failure; ``None`` if it depends on the records. The other
        arguments are as for `DataOpsCheckData`.

        Raises:
            PipelineDefinitionError: The translator returned something else than a spec of a check
                of the same asset, or a severity that cannot be.
        """
        if self.translator is None:
            return with_partitions(default, partitions_def)
        if severity is not None:
            default = default.with_metadata({**default.metadata, SEVERITY: severity.value})
        data = DataOpsCheckData(self.pipeline, default, node, output, declared)
        spec: object = self.translator.get_asset_check_spec(data)
        if not isinstance(spec, dg.AssetCheckSpec):
            wanted = "return the spec of the check, such as super().get_asset_check_spec(data)"
            raise self._error(default, f"returned {spec!r}; {wanted}")
        if spec.asset_key != default.asset_key:
            text = f"returned a check of {spec.asset_key.to_user_string()}; give it asset="
            raise self._error(default, f"{text}data.spec.asset_key")
        if not is_name(spec.name):
            raise self._error(default, f"returned the name {spec.name!r}; a name is {NAMES}")
        return with_partitions(self._with_severity(spec, default, severity), partitions_def)

    def _with_severity(
        self,
        spec: dg.AssetCheckSpec,
        default: dg.AssetCheckSpec,
        severity: dg.AssetCheckSeverity | None,
    ) -> dg.AssetCheckSpec:
        """Return a spec whose severity, if it has one, is a valid text."""
        level: Any = spec.metadata.get(SEVERITY, severity if spec.blocking else None)
        if level is None:
            return spec
        value: Any = level.value if isinstance(level, dg.TextMetadataValue) else level
        try:
            checked = severity_of(value, blocking=spec.blocking, default="WARN")
        except ConfigurationError as error:
            text = f"returned a check with the severity {error.found}; give {SEVERITY!r} in its "
            raise self._error(default, f"{text}metadata, {error.allowed}") from None
        return spec.with_metadata({**spec.metadata, SEVERITY: checked.value})

    def declared(
        self,
        check: DeclaredCheck,
        key: dg.AssetKey,
        node: OperatorNode | None,
        *,
        output: str = "",
        partitions_def: dg.PartitionsDefinition | None = None,
    ) -> DeclaredCheck:
        """Return a declared check of one asset, with the spec that it has there.

        Arguments are as for `spec`.

        Raises:
            PipelineDefinitionError: As for `spec`.
        """
        if self.translator is None:
            return check
        spec = self.spec(
            check.spec(key),
            partitions_def,
            node,
            output=output,
            severity=check.severity,
            declared=True,
        )
        severity = severity_in(spec, check.severity)
        return replace(
            check, name=spec.name, severity=severity, blocking=spec.blocking, given_spec=spec
        )

    def _error(self, check: dg.AssetCheckSpec, text: str) -> PipelineDefinitionError:
        subject = f"get_asset_check_spec of {type(self.translator).__name__}"
        asset = check.asset_key.to_user_string()
        return PipelineDefinitionError(
            self.pipeline, f"{subject} for check {check.name!r} of {asset} {text}"
        )

    def check_names(self, specs: Iterable[dg.AssetCheckSpec]) -> None:
        """Check that no two checks of an asset have the same name.

        Raises:
            PipelineDefinitionError: Two have it.
        """
        seen: set[dg.AssetCheckKey] = set()
        for spec in specs:
            if spec.key in seen:
                raise self._error(spec, "returned this name twice; give each check its own name")
            seen.add(spec.key)
