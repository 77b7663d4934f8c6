"""Run Python functions over jsonl files, as Dagster assets with checkpoints.

The names that are used most, by subject. ``help(build_definitions)`` describes one of them, and
``data.dedup`` lists a group of operators. docs/reference describes all names, by the same subjects.
``dagster_dataops.loading``, ``crude`` and ``llm`` have all names of loaders, crude data and models.

Operators         data_register, data, OperatorContext, To, Drop, Record
Pipelines         pipeline, chain, combine
Results           load_result, JsonlDataset, load_artefact, report, trace
Configuration     config, RayCluster, register_workplace
Dagster           build_definitions, dataops_assets, DataOpsResource, DataOpsIOManager,
                  DataOpsTranslator, NewFiles, PipelineSchedule,
                  OperatorPipelineComponent
Checks            checks
Language models   LLMOperator, ModelClient, LLMResource, dry_run, llm
Streams           read_jsonl, read_sequence, DataPipeline, Selector
Readers           readers, text
Files in records  File, FileReference
Loaders           DataLoader2, loading
Crude data        crude, metadataset
Errors and tests  DataOpsError, errors, testing
"""

from importlib import import_module

from dagster_dataops.foundation.exports import lazy_exports

__version__ = "0.2.0"
__all__, _load = lazy_exports(__name__)  # `__init__.pyi` lists the names


def __getattr__(name: str) -> object:
    if name == "crude":  # the function for type checkers; the module can be called as it is
        return import_module(f"{__name__}.crude")
    return _load(name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
