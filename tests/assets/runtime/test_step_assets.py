from pathlib import Path

import dagster as dg
import pytest

from dagster_dataops.assets.runtime.asset_paths import folder_of
from dagster_dataops.assets.runtime.step_assets import assets_in
from dagster_dataops.checkpoints.folder.manifest import NodeFolder

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

    @dg.multi_asset(
        specs=[dg.AssetSpec(["docs", name]) for name in ("one", "partitions", "left")],
        can_subset=True,
        partitions_def=_PARTITIONS if partitioned else None,
        backfill_policy=dg.BackfillPolicy.single_run() if partitioned else None,
    )
    def docs(context: dg.AssetExecutionContext):
        for key in sorted(context.selected_asset_keys):
            for partition in partitions:
                folder = folder_of(tmp_path, key.path, partition)
                assert assets_in(context, tmp_path, folder) == [(key, partition)]
                others = [
                    NodeFolder(folder.path / ".preview", folder.name),
                    folder_of(tmp_path / "elsewhere", key.path, partition),
                    folder_of(tmp_path, key.path, "e"),
                    folder_of(tmp_path, ["docs", "left"], partition),
                ]
                found.extend(assets_in(context, tmp_path, other) for other in others)
            yield dg.MaterializeResult(asset_key=key)

    job = dg.define_asset_job("two", selection=["docs/one", "docs/partitions"])
    tags = _SEVERAL if partitioned else {}
    resolved = dg.Definitions(assets=[docs], jobs=[job]).resolve_job_def("two")
    assert resolved.execute_in_process(tags=tags).success
    assert found == [[]] * 8 * len(partitions)


def test_a_folder_has_no_asset_in_an_op(tmp_path: Path) -> None:
    @dg.op
    def plain(context: dg.OpExecutionContext) -> None:
        assert assets_in(context, tmp_path, folder_of(tmp_path, ["docs"])) == []

    assert dg.GraphDefinition("all", node_defs=[plain]).to_job().execute_in_process().success
