"""The code version of an operator on this machine."""

import sys
from typing import Any

from dagster_dataops.operators.definition.operator import Operator


def code_version_here(operator: Operator, sent: str) -> str:
    """Return the code version of a received operator, from the source on this machine.

    Args:
        operator: The operator.
        sent: Its code version where it was sent. It is returned if the code came with the bytes of
            the operator, and not from a module of this machine.
    """
    spec = operator.__dataops__.spec
    by_reference = all(_is_module_attribute(target) for target in spec.targets)
    return spec.code_version if by_reference else sent


def _is_module_attribute(target: Any) -> bool:
    found: Any = sys.modules.get(target.__module__)
    for name in target.__qualname__.split("."):
        found = getattr(found, name, None)
    return target in (found, getattr(found, "function", None))
