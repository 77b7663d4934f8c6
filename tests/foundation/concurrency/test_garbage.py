"""Tests of dagster_dataops.foundation.concurrency.garbage."""

import gc
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from dagster_dataops.foundation.concurrency.garbage import collected_rarely


@pytest.fixture
def usual() -> Iterator[tuple[int, int, int]]:
    """Yield the thresholds; restore them whatever a test does."""
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_garbage_is_collected_rarely_in_the_block_and_as_before_after_it(
    usual: tuple[int, int, int],
):
    with pytest.raises(KeyError), collected_rarely():
        assert gc.get_threshold() == (20_000, *usual[1:])
        raise KeyError
    assert gc.get_threshold() == usual


def test_the_last_of_overlapping_blocks_restores_the_thresholds(usual: tuple[int, int, int]):
    first, second = ExitStack(), ExitStack()
    first.enter_context(collected_rarely())
    second.enter_context(collected_rarely())
    first.close()
    assert gc.get_threshold() == (20_000, *usual[1:])
    second.close()
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("own", [(0, 10, 10), (50_000, 10, 10)])
def test_a_collector_that_is_off_or_rarer_stays_so(
    usual: tuple[int, int, int], own: tuple[int, int, int]
):
    gc.set_threshold(*own)
    with collected_rarely():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own
