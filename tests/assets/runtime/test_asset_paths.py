"""Tests of asset keys and partition keys as folders: inside the root, each different."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.assets.runtime.asset_paths import folder_of, safe_part
from dagster_dataops.checkpoints.folder.manifest import NodeFolder

ROOT = Path("/results")
HOSTILE = ["..", ".", "", "/", "../../etc", "a/b", ".hidden", "checkpoints", "partitions", "%2E"]
HOSTILE += ["CON", "\0", "a_results.jsonl", "a_results.jsonl.json", "%2Ejsonl", "a" * 300]
characters = st.characters() | st.sampled_from("/.\0\udcff")  # lone surrogates as well
parts = st.one_of(st.sampled_from(HOSTILE), st.text(characters, max_size=300))
keys = st.lists(parts, min_size=1, max_size=3)
places = st.tuples(keys, st.none() | parts)


def test_the_folder_of_an_asset_is_its_key_below_the_root() -> None:
    folder = folder_of(ROOT, ["corpus", "unique"])
    assert folder == NodeFolder(ROOT / "corpus" / "unique", "unique")
    assert folder.result == ROOT / "corpus" / "unique" / "unique_results.jsonl"


def test_a_partition_is_a_folder_below_its_asset() -> None:
    folder = folder_of(ROOT, ["corpus", "unique"], "2024-01-01")
    assert folder == NodeFolder(ROOT / "corpus/unique/partitions/2024-01-01", "unique")


@pytest.mark.parametrize("part", HOSTILE)
def test_no_part_leads_out_of_the_root(part: str) -> None:
    for folder in (folder_of(ROOT, [part]), folder_of(ROOT, ["a"], part)):
        assert folder.path.parts[:2] == ROOT.parts
        assert ".." not in folder.path.parts
        assert "/" not in folder.name


@given(keys, st.none() | parts)
def test_every_folder_can_be_made(key: list[str], partition: str | None) -> None:
    folder = folder_of(ROOT, key, partition)
    depth = len(key) + (2 if partition is not None else 0)
    assert len(folder.path.relative_to(ROOT).parts) == depth
    longest = f".{folder.name}_results.jsonl.json.draft-123456"
    assert all(len(part.encode()) < 256 for part in (*folder.path.parts, longest))


@given(places, places)
def test_different_places_have_different_folders(
    one: tuple[list[str], str | None], other: tuple[list[str], str | None]
) -> None:
    if one != other:
        assert folder_of(ROOT, *one).path != folder_of(ROOT, *other).path


@given(keys, places)
def test_no_asset_is_inside_the_checkpoints_of_another(
    key: list[str], other: tuple[list[str], str | None]
) -> None:
    assert not folder_of(ROOT, *other).path.is_relative_to(folder_of(ROOT, key).checkpoints)


@pytest.mark.parametrize("part", ["plain", "a-b_c.1", "with space", "key=value,more"])
def test_ordinary_names_stay_readable(part: str) -> None:
    assert safe_part(part) == part


@pytest.mark.parametrize(
    "entry", ["result", "manifest", "errors", "input", "checkpoints", "artefact", "parts"]
)
def test_no_asset_is_in_place_of_a_file_or_folder_of_another(entry: str) -> None:
    taken: Path = getattr(folder_of(ROOT, ["ä"]), entry)
    assert folder_of(ROOT, ["ä", taken.name.replace("%C3%A4", "ä")]).path != taken


def test_no_asset_is_in_place_of_the_partitions_of_another() -> None:
    assert folder_of(ROOT, ["a", "partitions", "x"]).path != folder_of(ROOT, ["a"], "x").path
