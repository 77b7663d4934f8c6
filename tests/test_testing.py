"""The helper for tests of streams."""

import pytest

from dagster_dataops import DataPipeline
from dagster_dataops.testing import assert_resumes_anywhere

count, constant = DataPipeline.count, DataPipeline.constant


def test_the_helper_detects_a_stream_that_does_not_resume(monkeypatch):
    from dagster_dataops.streams.core.sequences import CountSource

    monkeypatch.setattr(CountSource, "restore", lambda self, state: None)
    with pytest.raises(AssertionError, match="at position 1"):
        assert_resumes_anywhere(lambda: count().take(3))
