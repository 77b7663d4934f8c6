"""Patterns of paths with partitions, and formats of time windows in them."""

import re
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import DataOpsResource
from dagster_dataops.assets.inputs.path_pattern import (
    PathPattern,
    is_pattern,
    key_of_name,
    matching,
    name_of_key,
)
from dagster_dataops.errors import ConfigurationError, InputError
from dagster_dataops.foundation.places.url_forms import ObjectUrl

STATIC = dg.StaticPartitionsDefinition(["a"])
FORBIDDEN = ("...", "\a", "\b", "\f", "\n", "\r", "\t", "\v", "\0")  # as Dagster has it
names = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"])
    | st.sampled_from("..%\n\udcff"),
    min_size=1,
    max_size=40,
)


@given(names)
def test_every_name_has_a_key_that_dagster_takes_and_that_leads_back_to_it(name: str) -> None:
    key = key_of_name(name)
    assert name_of_key(key) == name
    assert not any(text in key for text in FORBIDDEN)
    key.encode()


@given(names, names)
def test_different_names_have_different_keys(one: str, other: str) -> None:
    assert (key_of_name(one) == key_of_name(other)) == (one == other)


@pytest.mark.parametrize("name", ["2024-01-01", "my docs (1)", "résumé", "a.b..c", "x|y,[z]"])
def test_ordinary_names_are_keys_as_they_are(name: str) -> None:
    assert key_of_name(name) == name


@pytest.mark.parametrize("key", ["../x", "a/../../x", "/etc/passwd", "..", "%2E%2E/x", "a\0", "."])
def test_a_key_cannot_lead_to_another_folder(key: str) -> None:
    pattern = PathPattern("/inbox/{partition}.jsonl", STATIC)
    with pytest.raises(InputError, match="leads to another folder"):
        pattern.path(key)


def test_a_key_may_name_a_folder_below() -> None:
    pattern = PathPattern("/inbox/{partition}.jsonl", STATIC)
    assert pattern.path("2024/a") == Path("/inbox/2024/a.jsonl")


def test_the_key_of_an_object_is_the_text_of_its_url() -> None:
    file = PathPattern("s3://inbox/a//{partition}.jsonl", STATIC).path("2024/a")

    assert file == ObjectUrl("s3://inbox/a//2024/a.jsonl")
    assert DataOpsResource().location(file).key == "a//2024/a.jsonl"


def test_a_relative_path_is_below_a_working_directory_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "{odd} folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert PathPattern("in/{partition}.jsonl", STATIC).path("a") == folder / "in" / "a.jsonl"


@pytest.mark.parametrize(
    ("text", "name", "uri"),
    [
        ("/data/inbox/{partition}.jsonl", "inbox", "file:///data/inbox"),
        ("/data/docs-{partition}.jsonl", "docs", "file:///data"),
        ("/data/{partition}/my docs.jsonl", "my_docs", "file:///data"),
        ("/{partition}.jsonl", "files", "file:///"),
        ("s3://bucket/docs/{partition}.jsonl", "docs", "s3://bucket/docs"),
    ],
)
def test_an_asset_is_named_after_the_path_without_the_key(text: str, name: str, uri: str) -> None:
    pattern = PathPattern(text, STATIC)
    assert (pattern.name, pattern.uri) == (name, uri)


def test_braces_with_other_names_are_not_a_pattern() -> None:
    assert is_pattern("in/{partition}.jsonl")
    assert is_pattern("in/{partition:%Y}.jsonl")
    assert not is_pattern("in/{x}.jsonl")
    assert not is_pattern("in/{.jsonl")


def test_files_that_fit_have_their_keys_and_hidden_ones_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "in[1]"
    folder.mkdir()
    for name in [
        "a.jsonl",
        ".b.jsonl",
        "c.jsonl.part",
        "d%.jsonl",
        "e.json",
        ".jsonl",
        "f\n.jsonl",
    ]:
        (folder / name).touch()
    found = dict(matching(str(folder / "{partition}.jsonl")))
    assert found == {
        "a": folder / "a.jsonl",
        "d%25": folder / "d%.jsonl",
        "f%0A": folder / "f\n.jsonl",
    }
    pattern = PathPattern(str(folder / "{partition}.jsonl"), STATIC)
    assert {key: pattern.path(key) for key in found} == found


def test_repeated_partition_names_in_a_pattern_must_agree(tmp_path: Path) -> None:
    for folder, name in [("a", "a"), ("a", "b")]:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{name}.jsonl").touch()
    assert [key for key, _ in matching(f"{tmp_path}/{{partition}}/{{partition}}.jsonl")] == ["a"]


@pytest.mark.parametrize("text", ["in/docs.jsonl", "in/{day}.jsonl", "in/{partition:%Y}.jsonl"])
def test_a_pattern_for_new_files_names_only_the_partition(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"\{partition\}"):
        list(matching(text))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (r"C:\data\logs\{partition}.jsonl", "logs"),
        (r"C:\data\logs-{partition}.jsonl", "logs"),
        (r"\\server\share\{partition}.jsonl", "share"),
        ("/data/logs/{partition}.jsonl", "logs"),
    ],
)
def test_a_path_of_windows_is_called_by_its_file_or_folder(text: str, name: str) -> None:
    assert PathPattern(text, dg.StaticPartitionsDefinition(["a"])).name == name


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
