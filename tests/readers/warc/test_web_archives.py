"""Tests of dagster_dataops.readers.warc.web_archives."""

import sys

import pytest

from dagster_dataops import errors, readers
from dagster_dataops.testing import assert_resumes_anywhere

pytest.importorskip("warcio")


@pytest.mark.slow
def test_they_resume_anywhere(archive):
    assert_resumes_anywhere(lambda: readers.read_warc([archive, archive], None))
    assert_resumes_anywhere(lambda: readers.read_warc(archive).repeat(2))


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dagster_dataops.readers.warc.warc_records", None)
    with pytest.raises(errors.MissingExtraError, match=r"dagster-dataops\[warc\]"):
        readers.read_warc("x.warc")
