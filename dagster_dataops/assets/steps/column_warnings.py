"""warn_of_unknown: columns that `columns=` describes, and that no record has."""

from collections.abc import Iterable
from contextlib import suppress

from dagster_dataops.assets.inputs.source_files import source_file
from dagster_dataops.assets.metadata.columns.column_schema import ColumnSchema, schema_of
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.checkpoints.folder.manifest import published
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import DataOpsError
from dagster_dataops.operators.options.signature import nearest


def warn_of_unknown(
    context: StepContext,
    dataops: DataOpsResource,
    plan: AssetPlan,
    name: str,
    result: JsonlDataset,
    partition: str | None,
) -> None:
    """Log a warning that names the described columns that no record has, and those that are there.

    Texts for all nodes are compared after the last nodes, with the columns of all results before.
    """
    columns = plan.columns
    texts = columns.of_result(name)
    common = columns.common if columns.is_last(plan.node.name) else {}
    if not (texts or common) or plan.node.operator.__dataops__.spec.kind.holds_files:
        return
    with suppress(DataOpsError, OSError):  # the result is valid without the warning
        schema = schema_of(result)
        unknown = [column for column in texts if column not in schema.columns]
        others = [column for column in common if column not in {*schema.columns, *texts}]
        if others:
            before = _columns_before(dataops, plan, partition)
            unknown += [column for column in others if column not in before]
        if unknown and schema.records:
            context.log.warning(_text(plan.results[name].key.to_user_string(), unknown, schema))


def _columns_before(dataops: DataOpsResource, plan: AssetPlan, partition: str | None) -> set[str]:
    """Return the columns of the results and the file that the result of a node is made of."""
    columns = plan.columns
    datasets: list[JsonlDataset] = []
    if columns.source is not None and (partition is not None or plan.spec.partitions_def is None):
        datasets.append(JsonlDataset.at(source_file(columns.source, partition, dataops)))
    for key in columns.keys_before(plan.node.name):
        for part in dict.fromkeys((partition, None)):
            result = published(dataops.folder(key.path, part), whole=False)
            datasets += [] if result is None else [result[0]]
    return {name for dataset in datasets for name in schema_of(dataset).columns}


def _text(asset: str, unknown: Iterable[str], schema: ColumnSchema) -> str:
    columns = list(schema.columns)
    said = []
    for column in unknown:
        like = nearest(column, columns)
        said.append(f"{column!r} (did you mean {like!r}?)" if like else repr(column))
    there = ", ".join(map(repr, columns)) or "no columns"
    seen = f"which no record has ({schema.coverage}); it has {there}"
    return f"{asset}: columns= describes {', '.join(said)}, {seen}"
