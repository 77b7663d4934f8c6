"""Partitions in a defs.yaml."""

import dagster as dg
import pytest

from tests.assets.component_project import WARNED_OF
from tests.assets.components.declared import keywords_of

pytestmark = WARNED_OF


DAILY = dg.DailyPartitionsDefinition("2026-01-31", timezone="Europe/Paris")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{type: daily, start_date: '2026-01-31', timezone: Europe/Paris}", DAILY),
        (
            "{type: static, partition_keys: [de, '007']}",
            dg.StaticPartitionsDefinition(["de", "007"]),
        ),
        ("{type: dynamic, name: files}", dg.DynamicPartitionsDefinition(name="files")),
        ("{type: monthly, start_date: '2026-01-01'}", dg.MonthlyPartitionsDefinition("2026-01-01")),
        (
            "{type: time_window, start_date: '2026-02', fmt: '%Y-%m', cron_schedule: 0 0 1 * *}",
            dg.TimeWindowPartitionsDefinition(
                start="2026-02", fmt="%Y-%m", cron_schedule="0 0 1 * *"
            ),
        ),
    ],
)
def test_partitions_are_those_of_dagster(project, written, expected):
    assert keywords_of(project, f"partitions_def: {written}\n") == {"partitions_def": expected}


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        ("{type: single_run}", dg.BackfillPolicy.single_run()),
        ("{type: multi_run, max_partitions_per_run: 7}", dg.BackfillPolicy.multi_run(7)),
    ],
)
def test_backfill_policies_are_those_of_dagster(project, written, policy):
    assert keywords_of(project, f"backfill_policy: {written}\n") == {"backfill_policy": policy}
