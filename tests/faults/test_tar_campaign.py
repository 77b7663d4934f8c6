"""A sample of the campaign that compares tar archives with tarfile."""

import random

import pytest

from tests.faults.tar_campaign import archive, compare


@pytest.mark.parametrize("first", range(0, 300, 60))
def test_damaged_archives_are_read_as_tarfile_reads_them_or_refused(tmp_path, first):
    for seed in range(first, first + 60):
        assert compare(archive(random.Random(seed)), tmp_path / "a.tar") is None, f"seed {seed}"
