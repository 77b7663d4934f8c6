"""Fixtures that several modules of this folder share."""

import gzip

import pytest

from tests.readers.warc.archives import PAGES, page, written


@pytest.fixture(params=["warc", "warc.gz"])
def archive(tmp_path, request):
    """A web archive, plain or compressed record by record."""
    records = [written("warcinfo", "", "application/warc-fields", b"software: test\r\n")]
    for number in range(PAGES):
        records += page(number)
    if request.param.endswith("gz"):
        records = [gzip.compress(record) for record in records]
    path = tmp_path / f"pages.{request.param}"
    path.write_bytes(b"".join(records))
    return path
