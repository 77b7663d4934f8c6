"""Functions that are called for each item."""

import pytest

from dagster_dataops import DataPipeline, read_sequence
from dagster_dataops.errors import StreamArgumentError
from tests.streams.sequences import numbers


def test_functions_that_change_items_never_change_the_source():
    def marked(record):
        record["seen"] = record.get("seen", 0) + 1
        record["inner"]["list"].append(1)
        return record

    records = [{"inner": {"list": []}}]
    stream = read_sequence(records).repeat(3).map(marked)
    once = {"inner": {"list": [1]}, "seen": 1}

    assert list(stream) == [once] * 3
    assert list(DataPipeline.constant({"inner": {"list": []}}).map(marked).take(2)) == [once] * 2
    assert records == [{"inner": {"list": []}}]


def test_a_filter_returns_true_or_false():
    assert list(read_sequence([1, 0, 2]).filter(lambda x: x)) == [1, 2]
    assert list(read_sequence([1]).filter(lambda x: None)) == []
    with pytest.raises(RuntimeError, match="must return True or False, not a list"):
        list(read_sequence([1]).filter(lambda x: [x]))
    kept = read_sequence([{"a": {"n": 1}}, {"a": {"n": 2}}]).filter(lambda n: n > 1, "a.n")
    assert list(kept) == [{"a": {"n": 2}}]


def drawn(item, random):
    return item + random.random()


def test_values_depend_on_the_seed_of_the_stream_and_on_the_stage():
    stream = numbers(*range(5)).map(drawn, random=True)
    assert list(stream) == list(stream.and_return(seed=0))
    assert list(stream) != list(stream.and_return(seed=1))
    assert list(stream) != list(numbers(*range(5)).map(abs).map(drawn, random=True))
    assert stream.and_return().seeds.keys() == {"read_sequence>map"}


def test_all_functions_and_selected_parts_draw_from_the_generator_of_the_item():
    stream = read_sequence([{"a": 0, "b": 0}] * 2).map([drawn, drawn], "a,b", random=True)
    values = [value for record in stream for value in record.values()]
    assert len(set(values)) == 4
    assert all(0 < value < 2 for value in values)


def test_a_failure_shifts_no_other_value():
    def failing(item, random):
        value = random.random()
        return 1 // item and value

    def values(first):
        return list(numbers(first, 1, 1).map(failing, random=True).and_return(on_error="skip"))

    assert values(0) == values(1)[1:]
    with pytest.raises(ZeroDivisionError):
        list(numbers(0).map(failing, random=True))


@pytest.mark.parametrize("fn", [lambda item: item, [drawn, str.upper], lambda item, *, random: 1])
def test_a_function_that_takes_no_generator_is_refused_at_definition(fn):
    with pytest.raises(StreamArgumentError, match=r"fn is called with an item and a random.Random"):
        numbers(1).map(fn, random=True)
