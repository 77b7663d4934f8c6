"""`pipeline_in`: the pipeline with a name in a Python file."""

import importlib.util
import sys
from pathlib import Path

from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.places.opening import exists
from dagster_dataops.pipelines.pipeline import Pipeline


def pipeline_in(file: str, name: str, setting: str = "ROOT") -> Pipeline:
    """Return the pipeline with a name in a Python file, which is imported.

    Args:
        file: The path of the file.
        name: The name of the pipeline in it.
        setting: The setting or argument with the file, for errors.

    Raises:
        ConfigurationError: There is no such file or pipeline, or the file cannot be imported.
    """
    path = Path(file).expanduser().absolute()
    if not exists(path):
        raise ConfigurationError(setting, file, "a Python file that exists, as FILE.py:NAME")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None  # noqa: S101 - a path that ends with .py has one
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        reason = f"a Python file that can be imported: {type(error).__name__}: {error}"
        raise ConfigurationError(setting, file, reason) from error
    ppl = getattr(module, name, None)
    if not isinstance(ppl, Pipeline):
        pipelines = [key for key, value in vars(module).items() if isinstance(value, Pipeline)]
        known = f"; it has {', '.join(pipelines)}" if pipelines else "; it has none"
        raise ConfigurationError(setting, f"{file}:{name}", f"the name of a pipeline{known}")
    return ppl
