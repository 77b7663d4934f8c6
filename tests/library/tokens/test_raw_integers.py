"""Windows of `tokens.Pack` whose integers are not parsed give what parsed ones give."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.library.tokens.raw_integers import RawIntegers, decoder
from dagster_dataops.records import decode, encode
from tests.execution.helpers import error_rows, node, run, write_input

COLUMNS = ["input_ids", "labels"]
INTEGERS = st.lists(
    st.one_of(
        st.integers(-100, 100),
        st.integers(0, 200_000),
        st.sampled_from([0, 10, -(2**63), 2**64 - 1, 2**64, 10**18]),
    ),
    max_size=12,
)
PIECES = st.lists(
    st.sampled_from(
        [
            "1",
            "0",
            "00",
            "-",
            ",",
            "-0",
            "1.5",
            "1e3",
            " ",
            "]",
            "[",
            '"',
            "null",
            "99999999999999999999",
        ]
    ),
    max_size=8,
)


def plain(record: Any) -> Any:
    return {key: one.parsed() if type(one) is RawIntegers else one for key, one in record.items()}


def outcome(read: Any, line: bytes) -> Any:
    try:
        return plain(read(line))
    except ValueError:
        return "refused"


@settings(max_examples=300, deadline=None)
@given(ids=INTEGERS, labels=INTEGERS, compact=st.booleans(), text=st.text(max_size=5))
@pytest.mark.slow
def test_a_line_says_what_its_parsed_record_says(ids, labels, compact, text) -> None:
    record = {"text": text, "input_ids": ids, "labels": labels, "n": 1}
    line = json.dumps(record, separators=(",", ":") if compact else None).encode()
    assert outcome(decoder(COLUMNS), line) == outcome(decode, line)


@settings(max_examples=300, deadline=None)
@given(pieces=PIECES)
@example(pieces=["1", ",", "0", ",", "0"])
@example(pieces=["-", "1", ",", "-", "1"])
def test_a_damaged_line_is_refused_as_ever(pieces) -> None:
    line = f'{{"input_ids":[{"".join(pieces)}],"labels":[1]}}'.encode()
    assert outcome(decoder(COLUMNS), line) == outcome(decode, line)


@pytest.mark.parametrize(
    "line",
    [
        '{"a":{"input_ids":[1]},"labels":[2]}',
        '{"input_ids":[1],"a":{"input_ids":[2]},"labels":[2]}',
        '{"input_ids":[1],"input_ids":[2],"labels":[2]}',
        '{"input_ids":[1],"input_ids" : [2],"labels":[2]}',
        '{"input_ids":[5e-324],"labels":[2]}',
        '{"input_ids":[1],"input_ids":[5e-324],"labels":[2]}',
        r'{"text":"\"input_ids\":[1]","labels":[2]}',
        r'{"a\"input_ids":[1],"labels":[2]}',
        '{"input_ids":[[1]],"labels":["]"]}',
        '{"input_ids":null,"labels":[]}',
        '["input_ids":[1]]',
        '{"input_ids":[1],"labels":[2]',
    ],
)
def test_another_form_is_parsed(line: str) -> None:
    assert outcome(decoder(COLUMNS), line.encode()) == outcome(decode, line.encode())


def test_integers_as_orjson_writes_them_are_not_parsed() -> None:
    line = orjson.dumps({"input_ids": [1, 0, -1], "labels": [], "n": 1})
    expected = {"input_ids": RawIntegers(b"1,0,-1", 3), "labels": RawIntegers(b"", 0), "n": 1}
    assert decoder(COLUMNS)(line) == expected


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 9), max_size=12),
    options=st.fixed_dictionaries(
        {"strategy": st.sampled_from(["best_fit", "none"])},
        optional={
            "pad_id": st.sampled_from([0, 7]),
            "positions_key": st.just("p"),
            "boundaries_key": st.just("b"),
            "mask_first": st.booleans(),
            "on_overflow": st.sampled_from(["cut", "split"]),
        },
    ),
)
def test_packs_are_the_same_bytes(sizes, options) -> None:
    records = [
        {"input_ids": [10 * at + n for n in range(size)], "labels": [-100, *range(size)][:size]}
        for at, size in enumerate(sizes)
    ]
    operator = data.tokens.Pack(8, columns=COLUMNS, **options)
    raw = [operator.__dataops_decode__(orjson.dumps(record)) for record in records]

    parsed, packed = operator.forward_window(records), operator.forward_window(raw)

    assert list(map(encode, packed)) == list(map(encode, parsed))
    assert packed.unused == parsed.unused
    assert {place: str(one) for place, one in packed.failed.items()} == {
        place: str(one) for place, one in parsed.failed.items()
    }


def test_an_end_is_put_behind_texts_that_are_not_parsed() -> None:
    records = [{"token_ids": [1, 2]}, {"token_ids": []}, {"token_ids": [3]}]
    operator = data.tokens.Pack(8, end_id=9, strategy="best_fit")
    raw = [operator.__dataops_decode__(orjson.dumps(record)) for record in records]
    packs = [orjson.loads(encode(one)) for one in operator.forward_window(raw)]
    assert packs == operator.forward_window(records)
    assert packs[0]["token_ids"] == [1, 2, 9, 3, 9, 9]


@pytest.mark.parametrize("mode", ["single", "process"])
def test_a_run_packs_as_a_call_does(tmp_path: Path, mode: str) -> None:
    records: list[dict[str, Any]] = [
        {"input_ids": list(range(n % 7)), "labels": list(range(n % 7)), "text": "]"}
        for n in range(40)
    ]
    records[3]["labels"] = ["a"] * 3
    records[5]["input_ids"] = list(range(20))
    records[5]["labels"] = list(range(20))
    records[9]["labels"] = None
    dataset = write_input(tmp_path / "input.jsonl", records)
    operator = data.tokens.Pack(
        16, columns=COLUMNS, strategy="best_fit", _batch_size=8,
        _concurrency_mode=mode, _max_workers=2,
    )  # fmt: skip

    report = run(operator, dataset, node(tmp_path))

    expected, failed = [], 0
    for start in range(0, len(records), 8):
        window = operator.forward_window(records[start : start + 8])
        expected += window
        failed += len(window.failed)
    assert list(report.dataset) == expected
    assert len(error_rows(node(tmp_path))) == failed == 3
