"""A pipeline of three partitions, and its files."""

from pathlib import Path

import dagster as dg
import pytest

from tests.assets.helpers import (
    definitions_of,
    pipeline_of,
    write_jsonl,
)
from tests.assets.inputs.tagging import LETTERS, SINGLE_RUN, Tagging
from tests.registries import OperatorRegistry


@pytest.fixture
def tagging(registry: OperatorRegistry) -> Tagging:
    """An operator of the test's own."""
    return Tagging(registry)


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """Return a folder with a file of two records for each letter."""
    for key in "abc":
        rows = [{"id": f"{key}{number}"} for number in range(2)]
        write_jsonl(tmp_path / "inbox" / f"{key}.jsonl", rows)
    return tmp_path / "inbox"


@pytest.fixture
def static(tagging: Tagging, inbox: Path, root: Path) -> dg.Definitions:
    """Return two nodes over three static partitions, backfilled in one run."""
    ppl = pipeline_of(first=tagging.operator(), second=tagging.operator())
    source = inbox / "{partition}.jsonl"
    return definitions_of(ppl, source, root, partitions_def=LETTERS, backfill_policy=SINGLE_RUN)
