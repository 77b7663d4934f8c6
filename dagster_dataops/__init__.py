"""Run Python functions over jsonl files, as Dagster assets with checkpoints.

The names that are used most, by subject. ``help(build_definitions)`` describes one of them, and
``data.dedup`` lists a group of operators. docs/reference describes all names, by the same subjects.

Operators         data_register, data, OperatorContext, To, Drop, Operational
Pipelines         pipeline, chain, combine
Results           load_result, JsonlDataset, load_artefact, report, trace
Configuration     config, RayCluster, register_workplace
Dagster           build_definitions, dataops_assets, DataOpsResource, DataOpsIOManager,
                  DataOpsTranslator, NewFiles, PipelineSchedule,
                  OperatorPipelineComponent
Checks            checks, ErrorRateCheck
Language models   LLMOperator, ModelClient, LLMResource, dry_run
Streams           read_jsonl, DataPipeline, Selector
Readers           readers, text
Loaders           DataLoader2, torch_dataset
Crude data        crude, cook, Cooker, metadataset
Errors and tests  DataOpsError, errors, testing
"""

from dagster_dataops.exports import lazy_exports

__version__ = "0.2.0"
__all__, __getattr__ = lazy_exports(__name__)  # `__init__.pyi` lists the names


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
