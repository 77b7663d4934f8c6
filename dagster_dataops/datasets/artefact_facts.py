"""Read the JSON file of facts in an artefact, such as an index, with the number of its format."""

import json
from pathlib import Path
from typing import Any, Final

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.format_numbers import read_number

FORMAT: Final = "format"  # the key of the number
_UNNUMBERED: Final = 1  # the format of an artefact without a number, which has the same files


def read_facts(path: Path, builder: str, newest: int) -> dict[str, Any]:
    """Return the facts in a file of an artefact, without the number of its format.

    Args:
        path: The file.
        builder: The operator that writes such artefacts, for errors.
        newest: The number of the newest format that this version reads.

    Raises:
        DefinitionError: The file is missing or damaged.
        NewerVersionError: A newer version has written it.
    """
    try:
        facts = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise not_of(path, builder, str(error)) from None
    if not isinstance(facts, dict):
        raise not_of(path, builder, "it is no JSON object")
    if read_number(facts.pop(FORMAT, _UNNUMBERED), newest, str(path)) is None:
        raise not_of(path, builder, f"its {FORMAT} is no number from 1 to {newest}")
    return facts


def not_of(path: Path, builder: str, reason: str) -> DefinitionError:
    """Return the error for a folder that is no artefact of an operator."""
    msg = (
        f"the folder {str(path.parent)!r} is no folder of {builder}: {path.name}: {reason}; "
        f"build it again, or give the folder of one"
    )
    return DefinitionError(msg)
