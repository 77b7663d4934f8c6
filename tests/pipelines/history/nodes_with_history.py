"""Nodes that keep versions, for tests: run over records, with code that a test can edit."""

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson

from dagster_dataops import Operator, config, pipeline


def write_records(path: Path, records: Iterable[dict[str, Any]]) -> Path:
    """Write records to a jsonl file, which is replaced as other programs do."""
    draft = path.with_name(f"{path.name}.draft")
    draft.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in records))
    draft.replace(path)
    return path


def numbered(count: int, **fields: Any) -> list[dict[str, Any]]:
    """Return records with numbers and texts."""
    return [{"n": n, "text": f"text {n}", **fields} for n in range(count)]


def run(root: Path, source: Path, **operators: Operator) -> None:
    """Run a pipeline of operators, each over the result of the one before, whole and afresh."""
    with config.temporary(data_process_path=root, data_process_resume=False):
        with pipeline("docs") as ppl:
            for name, operator in operators.items():
                setattr(ppl, name, operator)
        ppl.materialize(source)


def records_of(path: Path) -> list[dict[str, Any]]:
    """Return the records in a file."""
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def edited_module(folder: Path, name: str, text: str) -> ModuleType:
    """Write a module of the user and import it anew, as a new process would."""
    path = folder / f"{name}.py"
    path.write_text(text)
    for cached in folder.glob(f"__pycache__/{name}.*"):
        cached.unlink()
    sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module(name)
