"""The examples in the docstrings of streams run, and each operation has one."""

import doctest
import inspect
import sys
import tempfile
from pathlib import Path

import pytest

import dagster_dataops
from dagster_dataops import DataPipeline, DataPipelineBuilder, read_sequence
from dagster_dataops import text as texts

NAMES = {
    "DataPipeline": DataPipeline,
    "Path": Path,
    "read_sequence": read_sequence,
    "tempfile": tempfile,
}
SHOWN = ["FileMapper", "create_bucket_sizes", "get_last_failed_example", "list_files"]
SHOWN += ["read_iterator", "read_jsonl", "read_sequence", "read_zipped_records"]
CLASSES = [*DataPipelineBuilder.__mro__[:-1], DataPipeline]
OBJECTS = [*CLASSES, texts.read_text, *(getattr(dagster_dataops, name) for name in SHOWN)]
# What stages are made of, and what a stream says about itself.
INTERNAL = {"as_written", "extended", "part", "then", "with_stage"}


@pytest.mark.parametrize("shown", OBJECTS, ids=lambda shown: shown.__name__)
def test_the_examples_in_docstrings_give_what_they_show(shown, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("file.tsv").write_text("en\tfr\n")
    names = {**vars(sys.modules[shown.__module__]), **NAMES}
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder().find(shown, globs=names):
        runner.run(example)
    assert not runner.failures


def operations_of(cls):
    return {
        name: one
        for name, one in vars(cls).items()
        if not name.startswith("_") and inspect.isroutine(getattr(cls, name))
    }


def test_each_operation_of_a_stream_has_an_example():
    listed = {name: getattr(dagster_dataops, name) for name in SHOWN}
    listed["read_text"] = texts.read_text
    for cls in CLASSES:
        listed |= operations_of(cls)
    missing = [
        name
        for name, one in listed.items()
        if name not in INTERNAL and ">>>" not in (inspect.getdoc(one) or "")
    ]
    assert missing == []
