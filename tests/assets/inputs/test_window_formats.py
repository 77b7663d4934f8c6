"""Tests of date formats in paths: a file belongs to one time window."""

import re
from typing import Any

import dagster as dg
import pytest

from dagster_dataops.assets.inputs.path_pattern import PathPattern
from dagster_dataops.errors import ConfigurationError, InputError

NEW_YORK = "America/New_York"
NIGHT = dg.HourlyPartitionsDefinition(
    "2024-11-02-00:00", end_date="2024-11-04-05:00", timezone=NEW_YORK
)
DAYS = dg.DailyPartitionsDefinition("2023-01-01", end_date="2025-01-01")
WEEKS = dg.WeeklyPartitionsDefinition("2023-01-01", end_date="2025-01-01")
MONTHS = dg.MonthlyPartitionsDefinition("2023-01-01", end_date="2025-01-01")
COLOURS = dg.StaticPartitionsDefinition(["red", "blue"])


@pytest.mark.parametrize(
    ("partitions", "text"),
    [
        (DAYS, "d/{partition:%Y-%m}.jsonl"),
        (DAYS, "d/{partition:%m-%d}.jsonl"),
        (DAYS, "d/{partition:%Y}/{partition:%d}.jsonl"),
        (DAYS, "d/{partition:%A}.jsonl"),
        (NIGHT, "d/{partition:%H}.jsonl"),
        (NIGHT, "d/{partition:%Y-%m-%d}.jsonl"),
        (WEEKS, "d/{partition:%Y-%m}.jsonl"),
        (MONTHS, "d/{partition:%B}.jsonl"),
        (MONTHS, "s3://bucket/{partition:%Y}.jsonl"),
        (dg.MultiPartitionsDefinition({"day": DAYS, "c": COLOURS}), "{c}/{day:%Y-%m}.jsonl"),
    ],
)
def test_a_format_that_is_too_coarse_is_refused(partitions: Any, text: str) -> None:
    with pytest.raises(ConfigurationError, match="one file for each partition; .* share one"):
        PathPattern(text, partitions)


@pytest.mark.parametrize(
    ("partitions", "text"),
    [
        (DAYS, "d/{partition:%Y/%m/%d}.jsonl"),
        (DAYS, "d/{partition:%Y}/{partition:%Y-%m-%d}.jsonl"),
        (DAYS, "d/{partition:%Y}/{partition}.jsonl"),
        (DAYS, "d/{partition:%j-%Y}.jsonl"),
        (WEEKS, "d/{partition:%G-W%V}.jsonl"),
        (MONTHS, "d/{partition:%Y-%m}.jsonl"),
        (MONTHS, "d/{partition:%b %y}.jsonl"),
        (dg.MonthlyPartitionsDefinition("2024-01-15", day_offset=15), "{partition:%Y%m}.jsonl"),
        (dg.DailyPartitionsDefinition("2024-01-01", end_date="2024-12-31"), "{partition:%m%d}"),
        (NIGHT, "d/{partition:%Y-%m-%dT%H%z}.jsonl"),
        (NIGHT, "d/{partition}.jsonl"),
        (dg.MultiPartitionsDefinition({"day": DAYS, "c": COLOURS}), "{c}/{day:%Y-%m-%d}.jsonl"),
        (dg.DailyPartitionsDefinition("2999-01-01"), "d/{partition:%Y-%m}.jsonl"),
    ],
)
def test_formats_that_tell_windows_apart_give_a_file_for_each(partitions: Any, text: str) -> None:
    pattern = PathPattern(text, partitions)
    keys = partitions.get_partition_keys()
    assert len({pattern.path(key) for key in keys}) == len(keys)


def test_the_hour_that_is_there_twice_is_refused_and_no_other() -> None:
    pattern = PathPattern("h/{partition:%Y-%m-%dT%H}.jsonl", NIGHT)
    refused = []
    for key in NIGHT.get_partition_keys():
        try:
            pattern.path(key)
        except InputError as error:
            refused.append((key, str(error)))
    assert [key for key, _ in refused] == ["2024-11-03-01:00", "2024-11-03-01:00-0500"]
    said = re.escape("its file is also that of 2024-11-03-01:00-0500")
    assert re.search(said, refused[0][1])
    assert "such as one with %z" in refused[0][1]


@pytest.mark.parametrize(
    ("zone", "day"),
    [("Europe/Berlin", "2024-10-27"), ("Australia/Lord_Howe", "2024-04-07"), ("UTC", "2024-10-27")],
)
def test_the_end_of_summer_is_known_everywhere(zone: str, day: str) -> None:
    windows = dg.TimeWindowPartitionsDefinition(
        start=f"{day}-00:00",
        end=f"{day}-06:00",
        fmt="%Y-%m-%d-%H:%M",
        cron_schedule="0 * * * *" if zone != "Australia/Lord_Howe" else "*/30 * * * *",
        timezone=zone,
    )
    pattern = PathPattern("h/{partition:%Y%m%d%H%M}.jsonl", windows)
    keys = windows.get_partition_keys()
    paths, refused = set(), 0
    for key in keys:
        try:
            paths.add(pattern.path(key))
        except InputError:
            refused += 1
    assert len(paths) + refused == len(keys)
    assert refused == (0 if zone == "UTC" else 2)
