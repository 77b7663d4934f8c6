"""The helpers for tests of streams and operators."""

import orjson
import pytest

from dagster_dataops import DataPipeline, data
from dagster_dataops.testing import assert_reads_declared, assert_resumes_anywhere
from tests.registries import OperatorRegistry

count, constant = DataPipeline.count, DataPipeline.constant


def test_the_helper_detects_a_stream_that_does_not_resume(monkeypatch):
    from dagster_dataops.streams.core.sequences import CountSource

    monkeypatch.setattr(CountSource, "restore", lambda self, state: None)
    with pytest.raises(AssertionError, match="at position 1"):
        assert_resumes_anywhere(lambda: count().take(3))


RECORDS = [{"id": 2000 + n, "text": f"text {n}", "lang": "de"} for n in range(3)]


@pytest.mark.slow
def test_operators_that_read_what_they_declare_pass(registry: OperatorRegistry):
    @registry("data.tried", _concurrency_mode="single", reads=["text"])
    def right(record):
        return {**record, "size": len(record["text"])}

    @registry("data.tried", _concurrency_mode="single", reads="observed")
    def observed(record):
        return record | {"size": len(record["text"])}

    @registry("data.tried", _concurrency_mode="single")
    def undeclared(record):
        return {"size": len(record)}

    for operator in (right(), observed(), undeclared(), data.text.Normalize()):
        assert_reads_declared(operator, RECORDS)


def test_a_column_that_is_read_and_not_declared_is_found(registry: OperatorRegistry):
    @registry("data.tried", _concurrency_mode="single", reads=["text"])
    def by_name(record):
        record["size"] = len(record["text"]) + len(record.get("lang", ""))

    @registry("data.tried", _concurrency_mode="single", reads=["text"])
    def by_all(record):
        return {**record, "size": len(record)}

    @registry("data.tried", _concurrency_mode="single", reads=["text"])
    def in_c(record):
        record["size"] = len(orjson.dumps(record))

    @registry("data.tried", _concurrency_mode="single", reads=["text"])
    def chosen(record):
        return {name: value for name, value in record.items() if name in {"id", "text", "lang"}}

    with pytest.raises(AssertionError, match="columns that it does not declare: lang"):
        assert_reads_declared(by_name(), RECORDS)
    for operator in (by_all(), in_c(), chosen()):
        with pytest.raises(AssertionError, match="a column was added, and a kept outcome is not"):
            assert_reads_declared(operator, RECORDS)
