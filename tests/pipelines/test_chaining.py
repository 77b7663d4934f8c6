"""Tests of dagster_dataops.pipelines.chaining: chains in every mode, against nodes in a row."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops import Pipeline, chain, config, data, pipeline
from dagster_dataops.errors import (
    ChainDefinitionError,
    OperatorOptionError,
    PipelineDefinitionError,
)
from dagster_dataops.operators.chains.chain import Chain
from tests.examples import at_most
from tests.nodes import ArtefactReference, Manifest
from tests.operators.chain_parts import ACTIONS, Records, act, funnel_of

MODES = ["single", "thread", "process", "async"]
PARTS = 3
NAMES = ["act", "act_2", "act_3"]


def parts_for(mode: str, batch: bool = False) -> list[Any]:
    last = data.chained.act_async if mode == "async" else data.chained.act
    middle = data.chained.act_batch if batch else data.chained.act
    return [data.chained.act(part=0), middle(part=1), last(part=2)]


def names_for(mode: str, batch: bool = False) -> list[str]:
    if batch:
        return ["act", "act_batch", "act_async" if mode == "async" else "act_2"]
    return [*NAMES[:2], "act_async"] if mode == "async" else NAMES


def write(path: Path, records: Records) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def manifest_in(root: Path, node: str) -> Manifest:
    found = Manifest.load(root / node / f"{node}_results.jsonl.json")
    assert found is not None
    return found


def without_seconds(manifest: Manifest) -> list[dict[str, Any]]:
    return [{key: row[key] for key in row if key != "seconds"} for row in manifest.funnel]


def errors_in(root: Path, node: str) -> Records:
    path = root / node / f"{node}_error.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def plans() -> st.SearchStrategy[Records]:
    def ended(actions: list[str]) -> list[str]:
        """No split before a failure: of nodes, only one of the records made of it would fail."""
        fails = any(action in {"fail", "wrong"} for action in actions)
        return ["keep" if fails and action == "split" else action for action in actions]

    actions = st.lists(st.sampled_from(ACTIONS), min_size=PARTS, max_size=PARTS).map(ended)
    return st.lists(actions, min_size=1, max_size=30).map(
        lambda found: [{"n": n, "do": do} for n, do in enumerate(found)]
    )


def check(folder: Path, mode: str, records: Records, batch: bool = False) -> None:
    source = write(folder / "in.jsonl", records)
    names = names_for(mode, batch)
    given = {"_batch_size": 4} if batch else {}
    with config.temporary(data_process_path=folder / "chain"):
        parts = parts_for(mode, batch)
        made = chain(*parts, name="made", _concurrency_mode=mode, _max_workers=2, **given)
        with pipeline() as ppl:
            ppl.made = made
        ppl.materialize(str(source)) if _any_succeeds(records) else _refused(ppl, source)
    if not _any_succeeds(records):
        return
    with config.temporary(data_process_path=folder / "nodes"):
        with pipeline() as nodes:
            for number in range(PARTS):
                nodes.add(
                    f"n{number}",
                    data.chained.act(
                        part=number, _concurrency_mode="single", _stop_after_failures=0
                    ),
                )
        nodes.materialize(str(source))
    mine = folder / "chain/made/made_results.jsonl"
    assert mine.read_bytes() == (folder / "nodes/n2/n2_results.jsonl").read_bytes()
    manifest = manifest_in(folder / "chain", "made")
    assert without_seconds(manifest) == funnel_of(records, PARTS, names)
    failed = sorted(
        (row["input"]["n"], row["message"]) for row in errors_in(folder / "chain", "made")
    )
    theirs = [row for number in range(PARTS) for row in errors_in(folder / "nodes", f"n{number}")]
    assert failed == sorted((row["input"]["n"], row["message"]) for row in theirs)
    for row in errors_in(folder / "chain", "made"):
        do = row["input"]["do"]
        first = next(number for number, one in enumerate(do) if one in {"fail", "wrong"})
        assert row["part"] == names[first]
        assert "dagster_dataops" not in row["traceback"]


def _messages(errors: Records) -> list[tuple[int, str]]:
    return sorted((row["input"]["n"], row["message"]) for row in errors)


def _any_succeeds(records: Records) -> bool:
    return not all(
        next((one for one in record["do"] if one in {"fail", "wrong", "empty", "drop"}), "")
        in {"fail", "wrong"}
        for record in records
    )


def _refused(ppl: Pipeline, source: Path) -> None:
    with pytest.raises(Exception, match="all records failed|calls failed"):
        ppl.materialize(str(source))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=at_most(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=plans())
def test_a_chain_gives_the_bytes_of_its_parts_as_nodes_in_a_row(
    tmp_path_factory: pytest.TempPathFactory, mode: str, records: Records
) -> None:
    check(tmp_path_factory.mktemp("chain"), mode, records)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=at_most(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=plans())
def test_a_part_that_takes_batches_gives_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, mode: str, records: Records
) -> None:
    check(tmp_path_factory.mktemp("chain"), mode, records, batch=True)


@pytest.mark.parametrize("mode", MODES[:3])
def test_parts_are_opened_in_order_and_closed_in_reverse(
    root: Path, tmp_path: Path, mode: str
) -> None:
    log = tmp_path / "log"
    made = chain(
        data.chained.Opened(log=str(log), label="a"),
        data.chained.counted(step=2),
        data.chained.Opened(log=str(log), label="b"),
        name="made",
        _concurrency_mode=mode,
        _max_workers=1,
    )
    results = made([{"n": n} for n in range(5)])
    assert results == [{"n": n, "a": "made", "index": n, "b": "made"} for n in range(5)]
    assert log.read_text().split("\n")[:4] == ["open a", "open b", "close b", "close a"]
    assert manifest_in(root, "made").counts == {"words": 10}


def test_retries_of_failed_records_keep_the_funnel_exact(root: Path, tmp_path: Path) -> None:
    marker = tmp_path / "works"

    def flaky(record: dict) -> Any:  # type: ignore[type-arg]
        if record["n"] % 4 == 1 and not marker.exists():
            raise OSError("down")
        return record

    def drop(record: dict) -> Any:  # type: ignore[type-arg]
        return [] if record["n"] % 2 else record

    records = [{"n": n} for n in range(40)]
    source = write(tmp_path / "in.jsonl", records)
    with config.temporary(data_process_path=root, data_process_resume=True):
        made = chain(flaky, drop, name="made", _concurrency_mode="single")
        made(str(source))
        before = without_seconds(manifest_in(root, "made"))
        assert [row["failed"] for row in before] == [10, 0]
        marker.touch()
    with config.temporary(data_process_path=root, data_process_resume="failed_records"):
        made(str(source))
    rows = without_seconds(manifest_in(root, "made"))
    assert rows == [
        {"name": "flaky", "entered": 40, "emitted": 40, "dropped": 0, "failed": 0},
        {"name": "drop", "entered": 40, "emitted": 20, "dropped": 20, "failed": 0},
    ]


@pytest.mark.parametrize("mode", ["single", "process"])
def test_outcomes_that_are_used_again_count_in_the_funnel(
    root: Path, tmp_path: Path, mode: str
) -> None:
    def rows(numbers: range) -> Records:
        kinds = ["keep", "split", "drop", "change"]
        return [{"n": n, "do": [kinds[n % 4], kinds[n % 3], "same"]} for n in numbers]

    made = chain(*parts_for(mode), name="made", _concurrency_mode=mode, _reuse_outcomes=True)
    with config.temporary(data_process_path=root, data_process_resume=True):
        for numbers in (range(60), range(20, 90)):
            records = rows(numbers)
            made(str(write(tmp_path / "in.jsonl", records)))
            assert without_seconds(manifest_in(root, "made")) == funnel_of(records, PARTS, NAMES)
    assert manifest_in(root, "made").resumed == 40


def test_a_result_that_json_cannot_hold_fails_in_the_last_part(root: Path) -> None:
    def hold(record: dict) -> Any:  # type: ignore[type-arg]
        made = {**record, "what": object()} if record["n"] % 2 else record
        return [made, record] if record["n"] == 3 else made

    made = chain(lambda_of_record, hold, name="made", _concurrency_mode="single")
    made([{"n": n} for n in range(4)])
    rows = without_seconds(manifest_in(root, "made"))
    assert [row["failed"] for row in rows] == [0, 2]
    assert [row["emitted"] for row in rows] == [4, 2]
    assert {row["part"] for row in errors_in(root, "made")} == {"hold"}


def lambda_of_record(record: dict) -> Any:  # type: ignore[type-arg]
    return record


def test_an_invalid_line_is_in_no_part(root: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"n": 1}\nnot json\n{"n": 2}\n')
    chain(lambda_of_record, lambda_of_record, name="made", _concurrency_mode="single")(str(source))
    rows = without_seconds(manifest_in(root, "made"))
    assert [(row["entered"], row["emitted"], row["failed"]) for row in rows] == [(2, 2, 0)] * 2
    assert "part" not in errors_in(root, "made")[0]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["thread", "process", "async"])
@pytest.mark.parametrize("stuck", [0, 3])  # the first is timed
def test_a_time_limit_names_the_part_that_took_too_long(root: Path, mode: str, stuck: int) -> None:
    async def wait(record: dict) -> Any:  # type: ignore[type-arg]
        await asyncio.sleep(30 if record["n"] == stuck else 0)

    def sleep(record: dict) -> Any:  # type: ignore[type-arg]
        time.sleep(10 if record["n"] == stuck else 0)

    slow = wait if mode == "async" else sleep
    made = chain(lambda_of_record, slow, name="made", _concurrency_mode=mode, _timeout=1.5)
    made([{"n": n} for n in range(5)])
    (row,) = errors_in(root, "made")
    assert (row["exception"], row["part"]) == ("RecordTimeout", slow.__name__)
    assert [one["failed"] for one in without_seconds(manifest_in(root, "made"))] == [0, 1]


# ------------------------------------------------------------ what it is made of


def test_chains_nest_and_parts_have_unique_names() -> None:
    inner = chain(data.chained.act(part=0), data.chained.counted(), name="inner")
    made = chain(inner, data.chained.act(part=1), inner)
    assert [part.name for part in made.parts] == [
        "act", "counted", "act_2", "act_3", "counted_2"
    ]  # fmt: skip
    assert made.__dataops__.spec.name == "inner_act_inner"
    assert isinstance(made, Chain)


def test_the_fingerprint_is_made_of_the_parts_in_order() -> None:
    def print_of(made: Any) -> tuple[str, str]:
        return made.__dataops__.spec.code_version, made.__dataops__.options_digest

    one, two = data.chained.act(part=0), data.chained.counted()
    base = print_of(chain(one, two))
    assert print_of(chain(one, two, _max_workers=3)) == base
    assert print_of(chain(chain(one), two)) == base
    assert print_of(chain(data.chained.act(part=1), two))[0] == base[0]
    assert print_of(chain(data.chained.act(part=1), two))[1] != base[1]
    assert print_of(chain(two, one))[0] != base[0]


def test_an_option_without_a_digest_is_named_with_its_part() -> None:
    made = chain(data.chained.act(part=(n for n in ())), name="made")
    (unknown,) = made.__dataops__.unknown_options
    assert "'part'" in unknown
    assert "of part 'act'" in unknown


def test_settings_are_those_on_which_the_parts_agree() -> None:
    act_, counted = data.chained.act, data.chained.counted
    made = chain(act_(_concurrency_mode="thread", _max_workers=3), counted(_max_workers=3))
    assert made.__dataops__.resolved.concurrency_mode == "thread"
    assert made.__dataops__.resolved.max_workers == 3
    with pytest.raises(OperatorOptionError, match=r"act 2, act 3\); give it to chain"):
        chain(act_(_max_workers=2), act_(_max_workers=3))
    with pytest.raises(OperatorOptionError, match=r"act 2, counted 3\); give it to chain"):
        chain(act_(_max_workers=2), counted(_max_workers=3))
    given = chain(act_(_max_workers=2), counted(_max_workers=3), _max_workers=4)
    assert given.__dataops__.resolved.max_workers == 4
    with pytest.raises(OperatorOptionError, match="one limit for the calls of all its parts"):
        chain(act_(_timeout=2), counted())
    assert chain(act_(_timeout=2), counted(), _timeout=5).__dataops__.resolved.timeout == 5
    assert chain(act_(_save_data=False), counted()).__dataops__.resolved.save_data
    with pytest.raises(OperatorOptionError, match="_max_worker.*did you mean '_max_workers'"):
        chain(act_(), _max_worker=3)
    with pytest.raises(OperatorOptionError, match="needs an `async def`"):
        chain(act_(), counted(), _concurrency_mode="async")


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (data.chained.Picked, "is a selection, which decides when it has seen all"),
        (data.chained.whole, "is a dataset operator, which takes all records"),
        (data.chained.Built, "builds an artefact, which needs all records"),
        (data.chained.by_number, r"has several results \(even, odd\), and a chain has one"),
        (lambda: pipeline("inner"), "part 2 is a Pipeline.*chained"),
        (lambda: 7, "part 2 is a int, not a record operator"),
        (lambda: data.chained.counted().set_output("x.jsonl"), "exports to x.jsonl"),
        (
            lambda: data.chained.counted(step=ArtefactReference("index")),
            "takes the artefact of node 'index' as an option",
        ),
    ],
)
def test_what_is_no_record_operator_is_refused_with_the_reason(part: Any, said: str) -> None:
    with pytest.raises(ChainDefinitionError, match=said):
        chain(data.chained.act(), part(), name="made")


def test_a_chain_stands_before_and_after_an_operator_with_several_results() -> None:
    counted = data.chained.counted
    with pipeline() as ppl:
        ppl.before = chain(counted(), counted(step=2))
        ppl.split = data.chained.by_number()
        ppl.add("after", chain(counted(), counted()), inputs=ppl.split.odd)
    assert ppl([{"n": n} for n in range(4)]) == [{"n": 1, "index": 0}, {"n": 3, "index": 1}]
    with pytest.raises(PipelineDefinitionError, match=r"node 'split': part .*several results"):
        ppl.chained()


def test_a_chain_needs_parts_and_a_plain_name() -> None:
    with pytest.raises(ChainDefinitionError, match="no parts"):
        chain()
    with pytest.raises(Exception, match="name"):
        chain(data.chained.act(), name="a/b")


@pytest.mark.parametrize("parts", [(), (data.text.Normalize,)])
def test_parts_and_options_by_keyword_are_refused(parts: tuple[Any, ...]) -> None:
    with pytest.raises(OperatorOptionError) as refused:
        chain(*parts, first=data.text.Normalize())
    text = "Operator chain: option 'first' is no execution setting. Give parts by position, and opt"
    assert str(refused.value).startswith(text)


def test_declared_columns_are_checked_between_parts_and_outside() -> None:
    from dagster_dataops import data_register

    @data_register("data.chained", columns={"x": int})
    def only_x(record):  # type: ignore[no-untyped-def]
        return {"x": 1}

    @data_register("data.chained", reads={"x": int}, writes={"y": int})
    def reads_x(record):  # type: ignore[no-untyped-def]
        return {**record, "y": 1}

    @data_register("data.chained", reads={"text": str})
    def reads_text(record):  # type: ignore[no-untyped-def]
        return record

    with pytest.raises(PipelineDefinitionError, match="'reads_text' reads column 'text'"):
        chain(only_x(), reads_text(), name="made")
    made = chain(only_x(), reads_x())
    assert made.__dataops__.spec.declared.columns == {"x": int, "y": int}
    assert chain(reads_x(), reads_text()).__dataops__.spec.declared.reads == {"x": int, "text": str}
    ppl = pipeline("docs")
    ppl.first = made
    ppl.second = chain(reads_text(), name="made")
    with pytest.raises(PipelineDefinitionError, match="node 'second' reads column 'text'"):
        ppl.__exit__(None)


# ------------------------------------------------------------ pipelines


def test_a_pipeline_in_a_line_becomes_one_node(root: Path, tmp_path: Path) -> None:
    records = [{"n": n, "do": ["keep", "split" if n % 2 else "drop", "change"]} for n in range(9)]
    source = write(tmp_path / "in.jsonl", records)
    with pipeline("docs") as ppl:
        for number in range(PARTS):
            ppl.add(f"n{number}", data.chained.act(part=number, _concurrency_mode="single"))
    nodes = ppl(str(source))
    one = ppl.chained()
    assert list(one.graph.nodes) == ["n2"]
    with config.temporary(data_process_path=root / "other"):
        assert one(str(source)) == nodes
        manifest = manifest_in(root / "other/docs", "n2")
    assert without_seconds(manifest) == funnel_of(records, PARTS, ["n0", "n1", "n2"])
    assert list(one.chained().graph.nodes) == ["n2"]


def test_what_is_not_in_a_line_cannot_be_chained() -> None:
    with pipeline("docs") as forked:
        forked.a = data.chained.act()
        forked.b = data.chained.act()
        forked.add("c", data.chained.act(), inputs=["a"])
    with pytest.raises(PipelineDefinitionError, match="node 'c' takes a, and in a line it would"):
        forked.chained()
    with pipeline("docs") as whole:
        whole.a = data.chained.act()
        whole.b = data.chained.whole()
    with pytest.raises(PipelineDefinitionError, match="node 'b': part chained.whole is a dataset"):
        whole.chained()


def test_the_export_of_the_last_node_is_that_of_the_chain(tmp_path: Path) -> None:
    with pipeline("docs") as ppl:
        ppl.a = act(part=0)  # type: ignore[call-arg]
        ppl.b = data.chained.counted().set_output(tmp_path / "out.jsonl")
    assert ppl.chained()([{"n": 1, "do": ["keep"]}]) == str(tmp_path / "out.jsonl")
