"""MetadatasetComponent: the records of a metadataset as an asset that a defs.yaml declares."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Annotated, Any

import dagster as dg

from dagster_dataops.assets.components.component import import_modules
from dagster_dataops.assets.components.source_position import NOWHERE, beside
from dagster_dataops.assets.definitions import dataops_resources
from dagster_dataops.assets.steps.source_assets import source_asset
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.override import override
from dagster_dataops.training.cooking.metadataset.metadataset_streams import metadataset


def _path(context: dg.ResolutionContext, path: str) -> str:
    return str(beside(context, path))


@dataclass(kw_only=True)
class MetadatasetComponent(dg.Component, dg.Resolvable):
    """The records that cookers make of a metadataset, as an asset with a jsonl file.

    Its datasets are external assets.

    Attributes:
        path: The YAML file, relative to the folder of the defs.yaml, or a URL.
        modules: Modules, or Python files relative to the component's folder.
        split: The split.
        cookers: The name of the list of cookers in one of the modules.
        take: The number of records after which a blend ends.
        seed: The seed of the draws.
        name: The name of the asset; by default that of the file.

    Example:
        .. code-block:: yaml

            type: dagster_dataops.MetadatasetComponent

            attributes:
              path: mix.yaml
              split: train
              modules: [cookers.py]
              take: 1000000
    """

    path: Annotated[str, dg.Resolver(_path, model_field_type=str)]
    modules: Sequence[str]
    split: str = "train"
    cookers: str = "cookers"
    take: int | None = None
    seed: int | None = None
    name: str | None = None

    @override
    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the asset, the external assets of the datasets, and the resources.

        Raises:
            DefsYamlError: A module cannot be imported.
            ConfigurationError: No module has the cookers.
            MetadatasetError: The file is not a valid metadataset.
            CookerError: No cooker fits a dataset, or its parameters do not.
            StreamDefinitionError: The blend never ends, and ``take`` is missing.
        """
        cookers = self._found_in(import_modules(context, list(self.modules), NOWHERE))
        stream = metadataset(self.path, split=self.split, cookers=cookers, seed=self.seed)
        if self.take is not None:
            stream = stream.take(self.take)
        options: Any = {} if self.name is None else {"stream_name": self.name}
        source = source_asset(stream, "", options)
        assets = [spec for spec in (source.definition, *source.files) if spec is not None]
        return dg.Definitions(assets=assets, resources=dataops_resources())

    def _found_in(self, modules: Sequence[ModuleType]) -> Any:
        """Return the cookers."""
        for module in modules:
            listed = getattr(module, self.cookers, None)
            if listed is not None:
                return listed
        raise ConfigurationError("cookers", self.cookers, "a list in one of `modules`")
