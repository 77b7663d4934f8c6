"""The examples in the docstrings of streams run, and each operation has one."""

import doctest
import inspect
import tempfile
from pathlib import Path

import pytest

from dagster_dataops import DataPipeline, DataPipelineBuilder, read_sequence
from dagster_dataops.streams import data_pipeline, factories, operations, text_streams
from dagster_dataops.streams.files import file_mapper
from dagster_dataops.streams.operations import Operations
from dagster_dataops.streams.stages.grouping import bucket_sizes

NAMES = {
    "DataPipeline": DataPipeline,
    "Path": Path,
    "read_sequence": read_sequence,
    "tempfile": tempfile,
}
MODULES = [bucket_sizes, data_pipeline, factories, file_mapper, operations, text_streams]
# What stages are made of, and what a stream says about itself.
INTERNAL = {"as_written", "extended", "part", "then", "with_stage"}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_examples_of_a_module_give_what_they_show(module, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("file.tsv").write_text("en\tfr\n")
    found = doctest.testmod(module, extraglobs=NAMES)
    assert found.attempted
    assert not found.failed


def operations_of(cls):
    return {
        name: one
        for name, one in vars(cls).items()
        if not name.startswith("_") and inspect.isroutine(getattr(cls, name))
    }


def test_each_operation_of_a_stream_has_an_example():
    listed = operations_of(Operations) | operations_of(DataPipelineBuilder)
    listed |= operations_of(DataPipeline)
    readers = {name: getattr(factories, name) for name in ("list_files", "read_jsonl")}
    missing = [
        name
        for name, one in (listed | readers).items()
        if name not in INTERNAL and ">>>" not in (inspect.getdoc(one) or "")
    ]
    assert missing == []
