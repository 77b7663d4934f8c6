"""`pipeline_in`: the pipeline with a name in a Python file."""

from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.python_file import module_of_file
from dagster_dataops.pipelines.pipeline import Pipeline


def pipeline_in(file: str, name: str, setting: str = "ROOT") -> Pipeline:
    """Return the pipeline with a name in a Python file, which is imported.

    Raises:
        ConfigurationError: There is no such file or pipeline, or the file cannot be imported.
    """
    module = module_of_file(file, setting)
    ppl = getattr(module, name, None)
    if not isinstance(ppl, Pipeline):
        pipelines = [key for key, value in vars(module).items() if isinstance(value, Pipeline)]
        known = f"; it has {', '.join(pipelines)}" if pipelines else "; it has none"
        raise ConfigurationError(setting, f"{file}:{name}", f"the name of a pipeline{known}")
    return ppl
