"""example_in: run the example in a docstring."""

import inspect
import textwrap
from itertools import takewhile
from typing import Any

_BLOCK = ".. code-block:: python"


def example_in(documented: object, module: str = "example", **names: Any) -> dict[str, Any]:
    """Run the first Python example of a docstring, and return its names.

    Args:
        documented: The function or class with the docstring.
        module: The name of the module that the example is in.
        **names: The names that the example uses.
    """
    lines = (inspect.getdoc(documented) or "").splitlines()
    at = next(number for number, line in enumerate(lines) if line.strip() == _BLOCK)
    indent = len(lines[at]) - len(lines[at].lstrip())
    inside = takewhile(lambda line: not line or line[: indent + 1].isspace(), lines[at + 1 :])
    namespace = {"__name__": module, **names}
    exec(textwrap.dedent("\n".join(inside)), namespace)  # noqa: S102 - our own docstring
    return namespace
