"""The modes of all filters, through one of them and through the engine."""

import json

import pytest

from dagster_dataops import Drop, chain, data
from dagster_dataops.errors import DefinitionError

SHORT, LONG = {"id": 1, "text": "short"}, {"id": 2, "text": "long enough"}


def test_drop_writes_nothing():
    assert data.filters.TextLength()([SHORT, LONG]) == [LONG]


def test_tag_keeps_all_records_with_signals_and_reason():
    tagged = data.filters.TextLength(mode="tag")([SHORT, LONG])

    assert tagged == [
        {**SHORT, "stats": {"text_len": 5}, "drop_reason": "low_text_len"},
        {**LONG, "stats": {"text_len": 11}, "drop_reason": None},
    ]


def test_both_drops_and_writes_signals():
    assert data.filters.TextLength(mode="both")([SHORT, LONG]) == [
        {**LONG, "stats": {"text_len": 11}}
    ]


def test_keys_can_be_chosen():
    operator = data.filters.TextLength(
        mode="tag", input_key="a[*].b", stats_key="s", reason_key="r", max_chars=3
    )

    (record,) = operator([{"a": [{"b": "xx"}, {"b": "y"}]}])

    assert record["s"] == {"text_len": 4}
    assert record["r"] == "low_text_len"


def test_signals_of_several_filters_are_united():
    first = data.filters.TextLength(mode="both")
    second = data.filters.AlphanumericRatio(mode="both")

    assert second(first([LONG]))[0]["stats"] == {"text_len": 11, "alnum_ratio": 10 / 11}


@pytest.mark.slow
def test_a_filter_that_tags_writes_its_reason_over_the_one_before():
    first, second = data.filters.TextLength(mode="tag"), data.filters.WordCount(mode="tag")
    own = data.filters.TextLength(mode="tag", reason_key="too_short")
    passing = data.filters.AlphanumericRatio(mode="tag")

    (tagged,) = second(first([SHORT]))
    assert tagged["drop_reason"] == "low_num_words"
    assert passing([tagged])[0]["drop_reason"] is None
    (kept,) = own([tagged])
    assert (kept["drop_reason"], kept["too_short"]) == ("low_num_words", "low_text_len")
    assert first(first([SHORT])) == first([SHORT])


@pytest.mark.parametrize("mode", ["drop", "tag", "both"])
def test_signals_are_computed_again_unless_they_are_to_be_reused(mode):
    stale = {**SHORT, "stats": {"text_len": 99}}

    again = data.filters.TextLength(mode=mode).forward(dict(stale))
    reused = data.filters.TextLength(mode=mode, reuse_stats=True).forward(dict(stale))

    assert not isinstance(reused, Drop)
    assert reused["stats"] == {"text_len": 99}
    assert mode == "tag" or again.reason == "low_text_len"
    assert mode != "tag" or again["stats"] == {"text_len": 5}


def test_limits_are_inclusive_and_none_is_no_limit():
    assert data.filters.TextLength(min_chars=5, max_chars=5)([SHORT, LONG]) == [SHORT]
    assert data.filters.TextLength(min_chars=None)([SHORT, LONG]) == [SHORT, LONG]


def test_zero_is_a_limit():
    assert data.filters.TextLength(min_chars=0, max_chars=0)([SHORT, {"text": ""}]) == [
        {"text": ""}
    ]


def test_drops_are_counted_by_reason(root):
    data.filters.TextLength(max_chars=10)([SHORT, LONG, SHORT, {"text": "x" * 10}])

    texts = [path.read_text() for path in root.rglob("*.json")]
    assert any('"low_text_len"' in text and '"high_text_len"' in text for text in texts)


def test_an_unknown_mode_is_refused():
    with pytest.raises(DefinitionError, match="mode"):
        data.filters.TextLength(mode="mark")


def test_a_column_of_another_use_is_an_error_of_the_record(root):
    records = [LONG, {**LONG, "stats": [1]}]

    assert len(data.filters.TextLength(mode="tag")(records)) == 1
    (path,) = root.rglob("*_error.jsonl")
    assert "choose another stats_key" in json.loads(path.read_text())["message"]


def test_filters_in_a_chain_and_in_worker_processes_agree(tmp_path):
    words = [f"word{number}" for number in range(9)]
    records = [
        {"text": " ".join(words[: n % 10]) + " again" * (n % 6) + f" {n} end"} for n in range(90)
    ]
    parts = [data.filters.WordRepetition, data.filters.WordCount, data.filters.LongWord]
    one_by_one = records
    for part in parts:
        one_by_one = part(_concurrency_mode="single")(one_by_one)

    assert 0 < len(one_by_one) < 90
    for part in parts:
        records = part(_concurrency_mode="process", _max_workers=2)(records)
    assert records == one_by_one


def test_filters_in_a_chain_split_a_text_once():
    calls = []

    def split(text):
        calls.append(text)
        return text.split()

    texts = [f"The {number} boats of that harbour came back and were late." for number in range(5)]
    parts = [
        data.filters.MeanWordLength(words=split),
        data.filters.GopherQuality(words=split, min_words=3, mode="both"),
        data.filters.LongWord(words=split),
    ]

    assert len(chain(*parts, _concurrency_mode="single")([{"text": text} for text in texts])) == 5
    assert calls == texts
