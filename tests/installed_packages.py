"""A small package that adds operators, a reader, an exporter and a check, and how to install it."""

import importlib.util
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ENTRY_POINTS: Final = """
[dagster_dataops.operators]
acme = acme_ops.operators

[dagster_dataops.readers]
read_acme = acme_ops.reading:read_acme

[dagster_dataops.exporters]
acme.txt = acme_ops.exporting:TextFile

[dagster_dataops.checks]
only_words = acme_ops.checking:only_words
"""
MODULES: Final = {
    "acme_ops/__init__.py": "",
    "acme_ops/operators.py": '''
"""Operators of Acme."""

from dagster_dataops import data_register

acme = data_register.new_group("acme")


class Clean(acme):
    """Remove a mark from texts."""

    def __init__(self, mark="!", **kwargs):
        super().__init__(**kwargs)
        self.mark = mark

    def forward(self, record: dict):
        record["text"] = record["text"].replace(self.mark, "")


@data_register("data.acme", _concurrency_mode="thread")
def shout(record: dict):
    """Write texts in capital letters."""
    record["text"] = record["text"].upper()
''',
    "acme_ops/reading.py": '''
from dagster_dataops import read_sequence


def read_acme(count: int):
    """Read records of Acme."""
    return read_sequence([{"text": f"word {number}!"} for number in range(count)]).and_return()
''',
    "acme_ops/exporting.py": """
class TextFile:
    format = "acme"
    place = "file"

    def write(self, records, place):
        place.write_text("".join(record["text"] + "\\n" for record in records))
""",
    "acme_ops/checking.py": '''
from dagster_dataops import checks


@checks.check_kind({"type": "string", "description": "The column.", "examples": ["text"]})
def only_words(column, *, name="only_words", severity=None, blocking=False):
    """Check that a column is there."""
    return checks.no_nulls(column, name=name, severity=severity, blocking=blocking)
''',
}


def install(
    folder: Path,
    modules: Mapping[str, str] = MODULES,
    entry_points: str = ENTRY_POINTS,
    name: str = "acme-ops",
) -> Path:
    """Install a package into a folder, as pip or uv do it; return the folder.

    Args:
        folder: The folder; it is to be put on the import path.
        modules: The texts of its modules, by path.
        entry_points: The text of its ``entry_points.txt``.
        name: Name of the package.
    """
    stem = f"{name.replace('-', '_')}-1.2"
    info = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "entry_points.txt": entry_points,
    }
    files = {**modules, **{f"{stem}.dist-info/{one}": text for one, text in info.items()}}
    record = f"{stem}.dist-info/RECORD"
    files[record] = "".join(f"{one},,\n" for one in [*files, record])
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder.parent / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    command = _installer()
    if command is None:  # what an installer does with a wheel of pure Python
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        return folder
    given = ["install", "--target", str(folder), "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*command, *given], check=True, capture_output=True, timeout=300)
    return folder


def _installer() -> list[str] | None:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is not None:
        return [uv, "pip"]
    has_pip = importlib.util.find_spec("pip") is not None
    return [sys.executable, "-m", "pip"] if has_pip else None
