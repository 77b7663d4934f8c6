"""Datasets of records, written to files."""

from pathlib import Path

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.writer import write_records


def dataset(folder: Path, name: str, *records: object) -> JsonlDataset:
    return write_records(folder / f"{name}.jsonl", records, name)
