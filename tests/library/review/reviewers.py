"""People who fill in files of questions, for tests of reviews."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from dagster_dataops.library.review.review_folder import ReviewFolder

Row = dict[str, Any]
Decide = Callable[[Row], None]


def questions(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("questions-*") if path.suffix != ".xml")


def faults_in(folder: Path) -> list[str]:
    return ReviewFolder(folder).answers().faults


def files_of_state(folder: Path) -> list[str]:
    """Return the names of the files whose changes make the sensor launch a run."""
    return [name for name, _, _ in ReviewFolder(folder).state]


def lines_of(folder: Path) -> list[Row]:
    lines = [line for path in questions(folder) for line in path.read_bytes().splitlines()]
    return [orjson.loads(line) for line in lines]


def decide(folder: Path, decision: Callable[[Row], Row], name: str = "decided.jsonl") -> None:
    """Write a file with a decision about each question of the jsonl files.

    ``decision`` takes the shown values and returns fields of the decision; empty without one.
    """
    rows = [{"review_id": row["review_id"], **decision(row["fields"])} for row in lines_of(folder)]
    content = b"".join(orjson.dumps(row) + b"\n" for row in rows if len(row) > 1)
    (folder / name).write_bytes(content)


def table_of(path: Path) -> list[Row]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))


def text_of_table(rows: list[Row], delimiter: str = ",", newline: str = "\r\n") -> str:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter, lineterminator=newline)
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()
