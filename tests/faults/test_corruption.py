"""Tests of damaged checkpoints: damaged records are repeated, all others are kept."""

from pathlib import Path

import pytest

from tests.faults.corruption import (
    MODES,
    Campaign,
    Damager,
    cut_everywhere,
    flip_bits,
    flip_heads,
)
from tests.nodes import CheckpointContent


@pytest.fixture
def damager(tmp_path: Path) -> Damager:
    return Damager(tmp_path, Campaign())


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_flipped_bit_costs_only_its_own_spans(damager: Damager, mode: str) -> None:
    damager.prepare((mode,), ("single spans", "merged spans"))
    flip_bits(24, 7, damager)
    assert damager.campaign.failures == []
    assert damager.campaign.flips == 24
    assert damager.campaign.redone > 0


@pytest.mark.slow
def test_a_journal_damaged_in_any_byte_of_a_frame_head_costs_that_frame(damager: Damager) -> None:
    damager.prepare(("single",), ("merged spans",))
    flip_heads("single, merged spans", damager)
    assert damager.campaign.failures == []
    assert damager.campaign.outcomes["single, merged spans", "redone"] > 0
    assert damager.campaign.outcomes["single, merged spans", "refused"] == 0


@pytest.mark.slow
def test_a_run_resumes_from_a_journal_truncated_anywhere(damager: Damager) -> None:
    damager.prepare(("single",), ("small spans",))
    cut_everywhere("single, small spans", damager, step=97)
    assert damager.campaign.failures == []


def test_every_prefix_of_a_journal_contains_the_spans_of_its_whole_frames(damager: Damager) -> None:
    damager.prepare(("single",), ("merged spans",))
    kept = damager.kept["single, merged spans"]
    journal = kept.checkpoint / "journal"
    data = journal.read_bytes()
    lost = [kept.hit_by(journal, length, len(data)) for length in range(len(data) + 1)]
    for length in range(len(data) + 1):
        journal.write_bytes(data[:length])
        found = CheckpointContent.read(kept.checkpoint)
        assert found.table.records == len(kept.finished - lost[length]), length
