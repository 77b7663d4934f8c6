"""Tests of ``python -m dagster_dataops run ASSET --redo-records CONDITION``."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.assets.helpers import read_jsonl, write_jsonl
from tests.command_line import main
from tests.each import each

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Failed to create default storage directory"),
]

CODE = """
from pathlib import Path

import dagster as dg

from dagster_dataops import (
    DataOpsResource, Drop, To, build_definitions, data_register, dataops_assets, dataops_resources,
    pipeline,
)

HERE = Path(__file__).parent


@data_register("data.GROUP", _concurrency_mode="single")
def answer(record):
    with (HERE / "calls").open("a") as file:
        print(record["id"], file=file)
    if not (HERE / "mended").exists():
        if record["id"] % 3 == 0:
            return Drop("timeout")
        if record["id"] % 5 == 0:
            raise ValueError("bad")
    return record | {"mended": (HERE / "mended").exists()}


@data_register("data.GROUP", _concurrency_mode="single", outputs=["even", "odd"])
def sides(record):
    return To("odd" if record["id"] % 2 else "even", record)


with pipeline("docs") as ppl:
    ppl.answer = answer()
    ppl.second = answer()
    ppl.sides = sides()

SOURCE = dict(source=str(HERE / "texts.jsonl"))
RESOURCE = DataOpsResource(root=str(HERE / "root"))


@dg.asset
def other():
    pass

"""
EACH_A_STEP = """
defs = dg.Definitions.merge(
    build_definitions(ppl, **SOURCE, resource=RESOURCE), dg.Definitions(assets=[other])
)
"""
ONE_STEP = """
@dataops_assets(ppl, **SOURCE)
def docs(context: dg.AssetExecutionContext, dataops: DataOpsResource):
    yield from dataops.run(context)


defs = dg.Definitions(assets=[docs, other], resources=dataops_resources(RESOURCE))
"""


@pytest.fixture(params=[EACH_A_STEP, ONE_STEP], ids=["each a step", "one step"])
def run(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Sequence[str]], int]:
    """Return a function that runs the command, after a run of all operators."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    write_jsonl(tmp_path / "texts.jsonl", [{"id": n} for n in range(12)])
    file = tmp_path / f"redo_{tmp_path.name}.py"
    group = file.stem.replace("-", "_")
    file.write_text(CODE.replace("GROUP", group) + request.param)

    def command(arguments: Sequence[str]) -> int:
        (tmp_path / "calls").write_text("")
        return main(["run", "-f", str(file), *arguments])

    assert command([]) == 0
    (tmp_path / "mended").touch()
    return command


def called(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "calls").read_text().split()]


def test_the_records_of_one_asset_that_fulfil_a_condition_are_processed_again(
    run: Callable[[Sequence[str]], int], tmp_path: Path
) -> None:
    assert run(["docs/answer", "--redo-records", "drop_reason == 'timeout' and id > 3"]) == 0
    assert called(tmp_path) == [6, 9]
    records = read_jsonl(tmp_path / "root/docs/answer/answer_results.jsonl")
    mended = {record["id"]: record["mended"] for record in records}
    assert mended == {n: n in {6, 9} for n in (1, 2, 4, 6, 7, 8, 9, 11)}

    assert run(["docs/answer", "--redo-records", "error_type == 'ValueError'"]) == 0
    assert called(tmp_path) == [5, 10]

    assert run(["docs/answer", "--redo-records", "id == 1 and dropped"]) == 0
    assert called(tmp_path) == []  # no record fulfils it


def test_an_output_of_an_operator_stands_for_the_operator(
    run: Callable[[Sequence[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    both = ["docs/sides/even", "docs/sides/odd"]
    assert run([*both, "--redo-records", "id == 4"]) == 0
    assert capsys.readouterr().out.count("docs/sides/") == len(both)


REFUSED = {
    "no condition": (["docs/answer", "--redo-records", ""], "a condition is expected"),
    "malformed": (["docs/answer", "--redo-records", "id = 3"], "write == to compare"),
    "an unknown column": (["docs/answer", "--redo-records", "idd > 3"], "names 'idd', which no"),
    "several assets": (
        ["docs/answer", "docs/second", "--redo-records", "failed"],
        "used with one ASSET, whose records are chosen, not with 2: docs/answer, docs/second",
    ),
    "no asset": (["--redo-records", "failed"], "used with one ASSET, whose records are chosen"),
    "no such asset": (["docs/answr", "--redo-records", "failed"], "Setting ASSET is 'docs/answr'"),
    "a source": (["docs/texts", "--redo-records", "failed"], "Setting ASSET is 'docs/texts'"),
    "no operator": (["other", "--redo-records", "failed"], "other has no `resume`"),
}


@each("case", REFUSED)
def test_what_cannot_be_redone_is_refused_by_name(
    case: str,
    run: Callable[[Sequence[str]], int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = tmp_path / "root/docs/answer/answer_results.jsonl"
    before = result.read_bytes()
    arguments, message = REFUSED[case]
    assert run(arguments) == 1
    assert message in capsys.readouterr().err
    assert called(tmp_path) == []
    assert result.read_bytes() == before
