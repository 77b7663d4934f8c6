"""Packs of whole texts: `tokens.Pack` with the strategies ``best_fit`` and ``none``."""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.tokens.pack_plans import best_fit
from tests.each import each
from tests.execution.helpers import MODES, error_rows, node, run, write_input

BOTH = ["input_ids", "labels"]


def texts(*lengths: int) -> list[dict[str, Any]]:
    """Return records whose ids tell the record and the place: 203 is the third of the second."""
    return [
        {"input_ids": ids, "labels": [-one for one in ids]}
        for number, length in enumerate(lengths, 1)
        for ids in [[100 * number + place for place in range(1, length + 1)]]
    ]


def packed(records: list[dict[str, Any]], most: int, **options: Any) -> list[dict[str, Any]]:
    options = {"strategy": "best_fit", "columns": ["input_ids"], **options}
    return list(data.tokens.Pack(most, **options).forward_window(records))


def first_fit_by_hand(lengths: Sequence[int], most: int) -> list[list[int]]:
    packs: list[list[int]] = []
    rooms: list[tuple[int, int]] = []  # the room of each pack, and when it got it
    for step, place in enumerate(sorted(range(len(lengths)), key=lambda at: -lengths[at])):
        fitting = [(room, since, at) for at, (room, since) in enumerate(rooms)]
        fitting = [one for one in fitting if one[0] >= lengths[place]]
        if fitting:
            room, _, at = min(fitting)
            packs[at].append(place)
            rooms[at] = (room - lengths[place], step)
        else:
            packs.append([place])
            rooms.append((most - lengths[place], step))
    return packs


@given(st.lists(st.integers(1, 12), max_size=40), st.integers(12, 16))
def test_the_plan_is_that_of_the_rule(lengths: list[int], most: int) -> None:
    assert best_fit(lengths, most) == first_fit_by_hand(lengths, most)


def test_a_large_window_is_planned_quickly_and_densely() -> None:
    chance = random.Random(1)
    lengths = [min(4096, int(chance.lognormvariate(5, 1)) + 1) for _ in range(100_000)]
    packs = best_fit(lengths, 4096)
    assert sum(lengths) / (len(packs) * 4096) > 0.999
    assert Counter(chain.from_iterable(packs)) == Counter(range(len(lengths)))


def test_texts_stay_whole_and_the_longest_are_packed_first() -> None:
    assert packed(texts(2, 5, 3, 4, 1), 6) == [
        {"input_ids": [201, 202, 203, 204, 205, 501], "seq_lengths": [5, 1]},
        {"input_ids": [401, 402, 403, 404, 101, 102], "seq_lengths": [4, 2]},
        {"input_ids": [301, 302, 303], "seq_lengths": [3]},
    ]


def test_labels_go_with_the_ids_and_no_text_learns_from_the_one_before_it() -> None:
    (pack,) = packed(texts(3, 2), 9, columns=BOTH, pad_id=0, positions_key="position_ids")
    assert pack == {
        "input_ids": [101, 102, 103, 201, 202, 0, 0, 0, 0],
        "labels": [-101, -102, -103, -100, -202, -100, -100, -100, -100],
        "seq_lengths": [3, 2],
        "position_ids": [0, 1, 2, 0, 1, 0, 1, 2, 3],
    }
    (unmasked,) = packed(texts(3, 2), 9, columns=BOTH, mask_first=False)
    assert unmasked["labels"] == [-101, -102, -103, -201, -202]
    masks = [{"input_ids": [1, 2], "mask": [1, 1]}]
    (pack,) = packed(masks, 3, columns=["input_ids", "mask"], pad_id=9)
    assert (pack["input_ids"], pack["mask"]) == ([1, 2, 9], [1, 1, 0])


def test_every_text_is_a_pack_of_its_own_without_a_strategy() -> None:
    options = {"strategy": "none", "pad_id": 0, "lengths_key": "n", "boundaries_key": "bounds"}
    assert packed(texts(2, 0, 3), 3, **options) == [
        {"input_ids": [101, 102, 0], "n": [2], "bounds": [0, 2]},
        {"input_ids": [301, 302, 303], "n": [3], "bounds": [0, 3]},
    ]


def test_pieces_of_joined_texts_have_lengths_if_these_have_a_name() -> None:
    options = {"strategy": "wrapped", "columns": BOTH, "lengths_key": "n"}
    found = packed(texts(2, 0, 5, 1), 3, **options, boundaries_key="b", positions_key="p")
    assert [(pack["n"], pack["b"], pack["p"]) for pack in found] == [
        ([2, 1], [0, 2, 3], [0, 1, 0]),
        ([3], [0, 3], [0, 1, 2]),
        ([1, 1], [0, 1, 2], [0, 0]),
    ]
    assert found[1]["labels"] == [-302, -303, -304]
    assert "seq_lengths" not in packed(texts(2), 3, strategy="wrapped")[0]


def test_a_text_that_is_too_long_is_cut_or_split() -> None:
    assert packed(texts(7, 2), 3, on_overflow="cut") == [
        {"input_ids": [101, 102, 103], "seq_lengths": [3]},
        {"input_ids": [201, 202], "seq_lengths": [2]},
    ]
    assert packed(texts(7, 2), 3, on_overflow="split") == [
        {"input_ids": [101, 102, 103], "seq_lengths": [3]},
        {"input_ids": [104, 105, 106], "seq_lengths": [3]},
        {"input_ids": [201, 202, 107], "seq_lengths": [2, 1]},
    ]
    assert packed(texts(3), 4, end_id=0)[0]["input_ids"] == [101, 102, 103, 0]


@given(
    st.lists(st.integers(0, 9), max_size=20),
    st.integers(1, 7),
    st.sampled_from(["cut", "split"]),
    st.sampled_from(["best_fit", "none"]),
)
def test_no_token_is_lost_but_those_that_are_cut(lengths, most, overflow, strategy) -> None:
    records = texts(*lengths)
    options = {"on_overflow": overflow, "strategy": strategy, "positions_key": "p"}
    found = packed(records, most, columns=BOTH, mask_first=False, **options)
    kept = most if overflow == "cut" else None
    expected = Counter(chain.from_iterable(one["input_ids"][:kept] for one in records))
    assert Counter(chain.from_iterable(one["input_ids"] for one in found)) == expected
    for pack in found:
        assert pack["labels"] == [-one for one in pack["input_ids"]]
        assert len(pack["input_ids"]) == sum(pack["seq_lengths"]) <= most
        starts = list(accumulate(pack["seq_lengths"], initial=0))[:-1]
        assert [place for place, at in enumerate(pack["p"]) if not at] == starts


@each("mode", [mode for mode in MODES if mode != "async"])
def test_every_mode_writes_the_same_packs_and_counts(mode: str, tmp_path) -> None:
    chance = random.Random(2)
    records = texts(*(chance.randrange(20) for _ in range(300)))
    options = {"columns": BOTH, "on_overflow": "cut", "_batch_size": 50}
    operator = data.tokens.Pack(
        15, strategy="best_fit", _concurrency_mode=mode, _max_workers=2, **options
    )
    report = run(operator, write_input(tmp_path / "in.jsonl", records), node(tmp_path / mode))

    windows = [records[at : at + 50] for at in range(0, 300, 50)]
    plain = {"columns": BOTH, "on_overflow": "cut"}
    assert list(report.dataset) == [
        pack for window in windows for pack in packed(window, 15, **plain)
    ]
    counts, manifest = report.manifest.counts, report.manifest
    sizes = [len(one["input_ids"]) for one in records]
    assert counts["packs"] == report.dataset.rows
    assert counts["packed_tokens"] == sum(min(size, 15) for size in sizes)
    assert counts["cut_tokens"] == sum(max(size - 15, 0) for size in sizes)
    assert counts["unused_tokens"] == counts["packs"] * 15 - counts["packed_tokens"]
    assert manifest.drops == {"not packed": sizes.count(0)}


def test_a_text_that_does_not_fit_fails_alone(tmp_path) -> None:
    records = texts(2, 4, 1)
    records.insert(1, {"input_ids": [1, 2.5], "labels": [1, 2]})
    records.insert(2, {"input_ids": [1, 2], "labels": [1]})
    records.append({"input_ids": [True], "labels": [1]})
    folder = node(tmp_path)
    operator = data.tokens.Pack(3, strategy="best_fit", columns=BOTH, _concurrency_mode="single")
    report = run(operator, write_input(tmp_path / "in.jsonl", records), folder)

    assert [pack["input_ids"] for pack in report.dataset] == [[101, 102, 301]]
    errors = [row["message"] for row in error_rows(folder)]
    assert "'input_ids' holds no list of integers" in errors[0]
    assert "'input_ids' has 2, 'labels' has 1" in errors[1]
    assert "has 4 tokens, and a sequence 3; give on_overflow='cut'" in errors[2]
    assert "'input_ids' holds no list of integers" in errors[3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop_last": True}, "no last sequence"),
        ({"strategy": "wrapped", "on_overflow": "cut"}, "'wrapped' cuts"),
        ({"end_id": 0, "columns": BOTH}, "no value in the other columns"),
        ({"columns": []}, "columns is"),
        ({"columns": "input_ids"}, "columns"),
        ({"columns": ["a", "a"]}, "one name"),
        ({"lengths_key": "input_ids"}, "one name"),
        ({"input_key": "a", "columns": BOTH}, "leave out input_key"),
        ({"strategy": "bfd"}, "strategy"),
        ({"columns": BOTH, "label_key": "label"}, "none of the columns behind the first"),
        ({"columns": BOTH, "label_key": "input_ids"}, "none of the columns behind the first"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(options, message) -> None:
    with pytest.raises(DefinitionError, match=message):
        packed(texts(1), 3, **options)
