"""Check the head of a node: who can write to the bucket must not choose files of this machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dagster_dataops.datasets.artefact import is_version_name
from dagster_dataops.datasets.published_files import MANIFEST
from dagster_dataops.errors import PathEscapeError, ResultMissingError
from dagster_dataops.foundation.places.confined_names import confined, is_plain

_NUMBERS: Final = ("size", "modified_ns")


def checked_head(content: Any, key: str, place: object) -> dict[str, Any]:
    """Return the content of a head whose names stay in the folder of the node.

    Args:
        content: The content.
        key: The key of the node's folder.
        place: The URL or path of the head, for errors.

    Raises:
        PathEscapeError: It names a file outside the folder, or an object of another node.
        ResultMissingError: It is no object, or has no facts about a file.
    """
    try:
        home = content.get("home", {})
        for name, file in home.get("files", {}).items():
            confined(name, place)
            _check_file(file, key, place)
        for facts in (content, *(content.get("outputs") or {}).values()):
            _check_result(facts, place)
        _check_numbers({"commit": 0, **home}, "commit")
    except (AttributeError, KeyError, TypeError) as error:
        reason = (
            f"its manifest is damaged ({type(error).__name__}: {error}); restore it, or delete it "
            "so that the next run publishes a new result"
        )
        raise ResultMissingError(str(place), reason) from None
    head: dict[str, Any] = content
    return head


def _check_file(file: Mapping[str, Any], key: str, place: object) -> None:
    """Check key and numbers of a published file."""
    _check_numbers(file, *_NUMBERS)
    if file["key"] and not confined(file["key"], place).startswith(f"{key}/" if key else ""):
        raise PathEscapeError(str(place), file["key"])


def _check_numbers(facts: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if type(facts[name]) is not int:
            raise TypeError(name)


def _check_result(facts: Mapping[str, Any], place: object) -> None:
    """Check the names in the facts about a result: of its folder, its files and its version."""
    if (folder := facts.get("folder", ".")) != ".":
        confined(folder, place)
    if not is_plain(facts.get("name", "node")):
        raise PathEscapeError(str(place), facts["name"])
    for version in (facts.get("parted", ""), facts.get("artefact", "")):
        if version and not is_version_name(version):
            raise PathEscapeError(str(place), version)


def node_of(part_of: object, folder: Path, key: str, place: object) -> Path:
    """Return the manifest of the node that a result of a named output is part of.

    It is in a folder above, so that no two manifests name one another.

    Args:
        part_of: The relative path of the manifest.
        folder: Of the result, in the working copy.
        key: The key of this folder.
        place: The URL of the head of the result, for errors.

    Raises:
        PathEscapeError: It is another path, or leads out of the working copy.
    """
    *ups, name = part_of.split("/") if isinstance(part_of, str) else [""]
    steps = len(ups)
    is_above = ups == [".."] * steps and 0 < steps <= len(key.split("/"))
    if not is_above or not is_plain(name) or not name.endswith(MANIFEST):
        raise PathEscapeError(str(place), part_of)
    return folder.parents[steps - 1] / name
