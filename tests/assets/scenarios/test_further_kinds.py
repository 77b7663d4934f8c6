"""Operators of kinds that the package does not have, as assets."""

from pathlib import Path

import dagster as dg

from dagster_dataops import data, pipeline
from tests.assets.helpers import checks_of, definitions_of, execute, metadata_of, read_jsonl
from tests.execution.helpers import write_input
from tests.operators.kinds.further_kinds import Mean, Sorted


def test_an_operator_of_a_further_kind_is_an_asset(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    source = write_input(tmp_path / "in.jsonl", [{"n": n % 7} for n in range(40)]).path
    with source.open("a") as file:
        file.write('{"other": 1}\n')
    with pipeline("docs") as ppl:
        ppl.ordered = Sorted(_concurrency_mode="thread")
        ppl.mean = Mean()
        ppl.centred = data.further_kinds.Centre(ppl.mean)
    definitions = definitions_of(ppl, str(source), tmp_path / "root", max_error_rate=0.5)
    result = execute(definitions, instance)

    ordered = metadata_of(result, "docs", "ordered")
    assert (ordered["rows_in"], ordered["dagster/row_count"], ordered["rows_failed"]) == (41, 40, 1)
    numbers = [one["n"] for one in read_jsonl(tmp_path / "root/docs/ordered/ordered_results.jsonl")]
    assert numbers == sorted(numbers, reverse=True)
    assert "trace" not in ordered
    assert "dagster/row_count" not in metadata_of(result, "docs", "mean")
    graph = definitions.resolve_asset_graph()
    assert graph.get(dg.AssetKey(["docs", "mean"])).kinds >= {"model"}
    kind = graph.get(dg.AssetKey(["docs", "ordered"])).metadata["dagster_dataops/kind"]
    assert kind == "sorting operator"
    assert {one.asset_key.path[-1] for one in checks_of(result)} == {"ordered", "centred"}
    assert execute(definitions, instance, tags={"dagster_dataops/retry_failed_records": "true"})
