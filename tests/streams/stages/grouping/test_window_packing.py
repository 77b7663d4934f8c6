import json

import pytest

from dagster_dataops import read_sequence
from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.testing import assert_resumes_anywhere


def by_four(items):
    return [items[at : at + 4] for at in range(0, len(items), 4)]


def numbers(count, packer=list, size=20, select=by_four):
    return read_sequence(list(range(count))).pack_windows(size, select, packer_of(packer))


def packer_of(function):
    return lambda group: {"pack": function(group)}


def fails_at_nine(group):
    if 9 in group:
        msg = "nine"
        raise ValueError(msg)
    return {"pack": group}


def test_windows_are_disjoint_and_the_last_one_is_shorter():
    seen = []

    def select(items):
        seen.append(items)
        return by_four(items)

    found = list(numbers(50, select=select))

    assert [len(window) for window in seen] == [20, 20, 10]
    assert len(found) == 13
    assert found[-1] == {"pack": [48, 49]}


def test_items_in_no_group_are_dropped_and_empty_groups_are_ignored():
    assert list(numbers(6, select=lambda items: [[], items[:1], items[:2]], size=3)) == [
        {"pack": [0]},
        {"pack": [0, 1]},
        {"pack": [3]},
        {"pack": [3, 4]},
    ]


def test_a_pack_can_be_several_records_or_none():
    stream = read_sequence([1, 2, 3, 4]).pack_windows(2, lambda items: [items], lambda group: None)
    assert list(stream) == []

    def several(group):
        yield from ({"n": item} for item in group)

    stream = read_sequence([1, 2, 3]).pack_windows(2, lambda items: [items], several)
    assert list(stream) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_a_pack_has_the_restore_keys_and_the_sources_of_its_items():
    items = [
        {"__restore_key__": ["a", "s", str(number)], "__sources__": [{"index": number}]}
        for number in range(3)
    ]

    (found,) = read_sequence(items).pack_windows(
        3, lambda window: [window], lambda group: dict(group[1])
    )

    assert found["__restore_key__"] == ["pack", *([item["__restore_key__"] for item in items])]
    assert found["__sources__"] == [{"index": 1}, {"index": 0}, {"index": 2}]


def test_an_item_that_is_returned_as_its_pack_is_not_changed():
    item = {"__restore_key__": ["a", "s", "k"]}

    found = list(
        read_sequence([item]).pack_windows(
            1, lambda window: [window, window], lambda group: group[0]
        )
    )

    assert [one["__restore_key__"] for one in found] == [["pack", ["a", "s", "k"]]] * 2


@pytest.mark.parametrize("at", [0, 3, 5, 13])
def test_a_stream_resumes_in_the_middle_of_a_window(at):
    first = numbers(55).and_return()
    items = iter(first)
    before = [next(items) for _ in range(at)]
    second = numbers(55).and_return()
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))

    assert before + list(second) == list(numbers(55))


def test_it_resumes_anywhere_with_a_window_of_held_items_before_it():
    assert_resumes_anywhere(
        lambda: (
            read_sequence(list(range(23)))
            .shuffle(5, seed=1)
            .pack_windows(7, by_four, packer_of(list))
        )
    )


def test_a_failed_pack_loses_its_group_alone_and_is_counted_once():
    def made():
        stream = read_sequence(list(range(24))).pack_windows(12, by_four, fails_at_nine)
        return stream.and_return(on_error="quarantine")

    whole = made()
    assert [one["pack"][0] for one in whole] == [0, 4, 12, 16, 20]
    assert [one["item"] for one in whole.quarantined] == [[8, 9, 10, 11]]

    first = made()
    items = iter(first)
    for _ in range(3):
        next(items)
    second = made()
    second.load_state_dict(first.state_dict())
    assert [one["pack"][0] for one in second] == [16, 20]
    assert second.errors == 1


def test_a_failed_selection_loses_its_window():
    def select(items):
        return by_four(items) if 9 not in items else None

    stream = numbers(30, size=10, select=select).and_return(on_error="skip")

    assert [one["pack"][0] for one in stream] == [10, 14, 18, 20, 24, 28]
    assert stream.errors == 1


@pytest.mark.parametrize(
    ("selected", "found"),
    [(None, "a NoneType"), ([1, 2], "a list with a int"), ([{"n": 1}], "a list with a dict")],
)
def test_a_selection_that_is_no_list_of_lists_says_so(selected, found):
    with pytest.raises(TypeError, match=f"select returned {found}; .* a list of lists of items"):
        list(numbers(3, select=lambda items: selected))


def test_epochs_have_their_own_windows():
    stream = (
        read_sequence([1, 2, 3]).pack_windows(2, lambda items: [items], packer_of(list)).repeat(2)
    )

    assert [one["pack"] for one in stream] == [[1, 2], [3], [1, 2], [3]]


def test_arguments_are_checked():
    with pytest.raises(StreamDefinitionError, match="size"):
        numbers(3, size=0)
    with pytest.raises(StreamDefinitionError, match="select"):
        numbers(3, select=None)
