"""Folders of assets, and the assets of steps."""

from pathlib import Path

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import assets
from dagster_dataops.assets.runtime.asset_paths import folder_of, safe_part
from dagster_dataops.assets.runtime.step_assets import assets_in
from tests.nodes import Root

RESULTS = Path("/results")
ROOT = Root(RESULTS)
HOSTILE = ["..", ".", "", "/", "../../etc", "a/b", ".hidden", "checkpoints", "partitions", "%2E"]
HOSTILE += ["CON", "\0", "a_results.jsonl", "a_results.jsonl.json", "%2Ejsonl", "a" * 300]
characters = st.characters() | st.sampled_from("/.\0\udcff")  # lone surrogates as well
parts = st.one_of(st.sampled_from(HOSTILE), st.text(characters, max_size=300))
keys = st.lists(parts, min_size=1, max_size=3)
places = st.tuples(keys, st.none() | parts)


def test_the_folder_of_an_asset_is_its_key_below_the_root() -> None:
    folder = folder_of(ROOT, ["corpus", "unique"])
    assert folder == assets.NodeFolder(RESULTS / "corpus" / "unique", "unique")
    assert folder.result == RESULTS / "corpus" / "unique" / "unique_results.jsonl"


def test_a_partition_is_a_folder_below_its_asset() -> None:
    folder = folder_of(ROOT, ["corpus", "unique"], "2024-01-01")
    assert folder == assets.NodeFolder(RESULTS / "corpus/unique/partitions/2024-01-01", "unique")


@pytest.mark.parametrize("part", HOSTILE)
def test_no_part_leads_out_of_the_root(part: str) -> None:
    for folder in (folder_of(ROOT, [part]), folder_of(ROOT, ["a"], part)):
        assert folder.path.parts[:2] == RESULTS.parts
        assert ".." not in folder.path.parts
        assert "/" not in folder.name


@given(keys, st.none() | parts)
def test_every_folder_can_be_made(key: list[str], partition: str | None) -> None:
    folder = folder_of(ROOT, key, partition)
    depth = len(key) + (2 if partition is not None else 0)
    assert len(folder.path.relative_to(RESULTS).parts) == depth
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


_PARTITIONS = dg.StaticPartitionsDefinition(["a", "b/c", ".d", "e"])
_SEVERAL = {
    "dagster/asset_partition_range_start": "a",
    "dagster/asset_partition_range_end": ".d",
}


@pytest.mark.parametrize("partitioned", [False, True], ids=["whole", "in partitions"])
def test_every_folder_of_a_step_leads_to_its_asset_and_no_other_to_any(
    tmp_path: Path, partitioned: bool
) -> None:
    partitions = ("a", "b/c", ".d") if partitioned else (None,)
    found: list[object] = []
    root = Root(tmp_path)

    @dg.multi_asset(
        specs=[dg.AssetSpec(["docs", name]) for name in ("one", "partitions", "left")],
        can_subset=True,
        partitions_def=_PARTITIONS if partitioned else None,
        backfill_policy=dg.BackfillPolicy.single_run() if partitioned else None,
    )
    def docs(context: dg.AssetExecutionContext):
        for key in sorted(context.selected_asset_keys):
            for partition in partitions:
                folder = folder_of(root, key.path, partition)
                assert assets_in(context, root, folder) == [(key, partition)]
                others = [
                    assets.NodeFolder(folder.path / ".preview", folder.name),
                    folder_of(root / "elsewhere", key.path, partition),
                    folder_of(root, key.path, "e"),
                    folder_of(root, ["docs", "left"], partition),
                ]
                found.extend(assets_in(context, root, other) for other in others)
            yield dg.MaterializeResult(asset_key=key)

    job = dg.define_asset_job("two", selection=["docs/one", "docs/partitions"])
    tags = _SEVERAL if partitioned else {}
    resolved = dg.Definitions(assets=[docs], jobs=[job]).resolve_job_def("two")
    assert resolved.execute_in_process(tags=tags).success
    assert found == [[]] * 8 * len(partitions)


def test_a_folder_has_no_asset_in_an_op(tmp_path: Path) -> None:
    root = Root(tmp_path)

    @dg.op
    def plain(context: dg.OpExecutionContext) -> None:
        assert assets_in(context, root, folder_of(root, ["docs"])) == []

    assert dg.GraphDefinition("all", node_defs=[plain]).to_job().execute_in_process().success
