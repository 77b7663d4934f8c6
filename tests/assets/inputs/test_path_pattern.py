"""Tests of paths that name their partition, and of partition keys for file names."""

from pathlib import Path

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.assets.inputs.path_pattern import (
    PathPattern,
    is_pattern,
    key_of_name,
    matching,
    name_of_key,
)
from dagster_dataops.errors import ConfigurationError, InputError

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
