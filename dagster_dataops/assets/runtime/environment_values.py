"""Values that name environment variables, which are read when a run starts.

So no secret is in the definitions, in the launchpad or in the stored config of a run.
"""

import os
from collections.abc import Mapping
from typing import Any, Final

import dagster as dg

from dagster_dataops.errors import ConfigurationError

_NAMES: Final = (dg.EnvVar, type(dg.EnvVar.int("NAME")))  # the second class has no public name


def from_environment(name: str, value: Any) -> Any:
    """Return a value with those of environment variables in place of their names, at any depth.

    ``dg.EnvVar("NAME")`` and ``{"env": "NAME"}`` name a variable.

    Raises:
        ConfigurationError: A variable is not set.
    """
    variable = _variable_of(value)
    if variable is not None:
        try:
            return os.environ[variable]
        except KeyError:
            allowed = f"set: the environment variable {variable}, which it names, is not"
            raise ConfigurationError(name, f"EnvVar({variable!r})", allowed) from None
    if isinstance(value, Mapping):
        return {key: from_environment(f"{name}.{key}", item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [from_environment(name, item) for item in value]
    return value


def as_run_config(value: Any) -> Any:
    """Return a value in the form of a run config: ``{"env": "NAME"}`` for each ``dg.EnvVar``.

    Dagster then stores the name of the variable, and reads it when a run starts.
    """
    if isinstance(value, _NAMES):
        return {"env": value.env_var_name}
    if isinstance(value, Mapping):
        return {key: as_run_config(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_run_config(item) for item in value]
    return value


def check_written(name: str, value: Any) -> None:
    """Check that a setting that is needed before a run names no environment variable.

    Raises:
        ConfigurationError: It is a ``dg.EnvVar``, or one is in it.
    """
    if isinstance(value, _NAMES):
        variable = value.env_var_name
        allowed = (
            f"the value itself, such as os.environ[{variable!r}]: it is needed when definitions "
            "load, and an EnvVar is read when a run starts"
        )
        raise ConfigurationError(name, f"EnvVar({variable!r})", allowed)
    if isinstance(value, Mapping):
        for key, item in value.items():
            check_written(f"{name}.{key}", item)
    elif type(value) in {list, tuple, set, frozenset}:  # records of Dagster are tuples, too
        for item in value:
            check_written(name, item)


def written_values(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the items of a mapping that name no environment variable."""
    return {key: item for key, item in value.items() if _variable_of(item) is None}


def _variable_of(value: Any) -> str | None:
    if isinstance(value, dg.EnvVar):
        return value.env_var_name
    if isinstance(value, Mapping) and set(value) == {"env"} and isinstance(value["env"], str):
        return value["env"]
    return None


def is_text(value: object) -> bool:
    """Return whether a value is a text, or names an environment variable that holds one."""
    return isinstance(value, str) or _variable_of(value) is not None


def shape_of(value: object) -> str:
    """Describe a value without its content: by its type, or by the keys of a mapping."""
    if isinstance(value, Mapping):
        return f"a mapping with the keys {list(value)}"
    return f"a value of type {type(value).__name__}"


def fault_of_option(value: object) -> str | None:
    """Describe what an argument of a library may not be, without its content.

    It may be a text, a number, a truth value, ``None``, a variable that holds a text, or a list
    or mapping of these.

    Returns:
        The fault; ``None`` if there is none.
    """
    if value is None or isinstance(value, (bool, int, float)) or is_text(value):
        return None
    if isinstance(value, (list, tuple)):
        return next(filter(None, map(fault_of_option, value)), None)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        faults = ((key, fault_of_option(item)) for key, item in value.items())
        return next((f"{fault} in {key!r}" for key, fault in faults if fault), None)
    return shape_of(value)
