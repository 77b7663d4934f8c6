"""The exporter of a path, by its ending; the file that a result is exported to."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from dagster_dataops.datasets.exporters.exporter import Exporter

_MODULE: Final = "dagster_dataops.datasets.exporters."
_ENDINGS: Final[dict[str, tuple[str, str, dict[str, str]]]] = {
    ".jsonl": ("json_lines", "JsonLinesFile", {}),
    ".jsonl.gz": ("json_lines", "JsonLinesFile", {"compression": "gz"}),
    ".jsonl.zst": ("json_lines", "JsonLinesFile", {"compression": "zst"}),
    ".csv": ("csv_table", "CsvTable", {}),
    ".tsv": ("csv_table", "CsvTable", {"delimiter": "\t"}),
    ".parquet": ("parquet_table", "ParquetTable", {}),
}
ENDINGS: Final = tuple(_ENDINGS)
FOLDER_ENDING: Final = ".jsonl"  # of the files in a folder of exports


def ending_of(path: Path) -> str | None:
    """Return the ending of a file that can be exported to; ``None`` for a folder."""
    ending = next((ending for ending in ENDINGS if path.name.endswith(ending)), None)
    if ending is not None or "." not in path.name:
        return ending
    return next((ending for ending in _added_endings() if path.name.endswith(ending)), None)


def _added_endings() -> "dict[str, EntryPoint]":
    """Return the endings that installed packages add, the longest first."""
    from dagster_dataops.foundation.entry_points import EXPORTERS, added  # most runs need none

    entries = added(EXPORTERS, [ending[1:] for ending in ENDINGS])
    return {f".{name}": entries[name] for name in sorted(entries, key=len, reverse=True)}


def names_file(output: Path | None) -> bool:
    """Return whether the argument of ``set_output`` is a file; any other is a folder."""
    return output is not None and ending_of(output) is not None


def exporter_of(path: Path) -> "Exporter":
    """Return the exporter of a file, by its ending.

    Raises:
        MissingExtraError: The format needs a package that is not installed.
        EntryPointError: That of an installed package cannot be imported, or writes no file.
    """
    ending = ending_of(path) or FOLDER_ENDING
    if ending not in _ENDINGS:
        return _added_exporter(_added_endings()[ending])
    module, name, options = _ENDINGS[ending]
    make = cast("Callable[..., Exporter]", getattr(import_module(_MODULE + module), name))
    return make(**options)


def _added_exporter(entry: "EntryPoint") -> "Exporter":
    from dagster_dataops.foundation.entry_points import load, unfit

    make = load(entry)
    added_exporter = make() if callable(make) else make
    has_all = isinstance(getattr(added_exporter, "format", None), str) and callable(
        getattr(added_exporter, "write", None)
    )
    if not has_all or getattr(added_exporter, "place", "") != "file":
        wanted = (
            "a class or function without arguments that gives an exporter: with format, a text, "
            "place = 'file', and write(records, place)"
        )
        raise unfit(entry, make, wanted)
    exporter: Exporter = added_exporter
    return exporter


def check_output(output: Path) -> None:
    """Check that the argument of ``set_output`` can be exported to.

    Raises:
        MissingExtraError: The format of the file needs a package that is not installed.
    """
    if names_file(output):
        exporter_of(output)


def exported_path(output: Path, name: str) -> Path:
    """Return the file that a result is exported to.

    Args:
        output: The argument of ``set_output``, a file or a folder.
        name: Of the node; the file in a folder is named after it.
    """
    target = output.expanduser().absolute()
    return target if names_file(target) else target / f"{name}{FOLDER_ENDING}"
