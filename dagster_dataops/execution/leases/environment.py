"""The environment that must be equal on every machine of a run."""

import platform

from dagster_dataops.execution.agent_pool import AgentEnvironment


def environment_here(code: str) -> AgentEnvironment:
    """Return the environment of this process.

    Args:
        code: The code version of the operator here.
    """
    from dagster_dataops import __version__

    major, minor, _ = platform.python_version_tuple()
    return AgentEnvironment(f"{major}.{minor}", __version__, code)
