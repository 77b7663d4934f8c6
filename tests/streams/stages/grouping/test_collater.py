"""`Collater` and ``collate``: batches of lists of items, with padding."""

import json
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

from dagster_dataops import CollateOptionsOverride, Collater, read_sequence
from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError, UnfitRecordError
from dagster_dataops.testing import assert_resumes_anywhere
from tests.each import each


class Point(NamedTuple):
    x: Any
    y: Any


@each(
    "case",
    [
        ([1, 2], [1, 2]),
        (["a", "b"], ["a", "b"]),
        ([[1, "a"], [2, "b"]], [[1, 2], ["a", "b"]]),
        ([{"a": 1, "b": [3, 4]}, {"b": [5, 6], "a": 2}], {"a": [1, 2], "b": [[3, 5], [4, 6]]}),
        ([(1, 2), (3, 4)], ([1, 3], [2, 4])),
        ([Point(1, 2), Point(3, 4)], Point([1, 3], [2, 4])),
        ([None, None], [None, None]),
        ([[], []], []),
        ({"a": 1}, {"a": [1]}),
        (7, [7]),
    ],
)
def test_items_become_one_batch_of_their_structure(case):
    items, wanted = case
    found = Collater()(items)
    assert found == wanted
    assert type(found) is type(wanted)


@each(
    "case",
    [
        ([], "empty"),
        ([1, "a"], "the value of item 1 is a str, and that of item 0 is a int"),
        ([1, 1.5], "is a float"),
        ([1, True], "is a bool"),
        ([1, None], "is a object"),
        ([[1, 2], [3, "b"]], r"at '\[1\]' of item 1 is a str"),
        ([[1, 2], [3]], "has 1 elements, and that of item 0 has 2"),
        ([{"a": [[1], [2]]}, {"a": [[1], [2, 3]]}], r"at 'a\[1\]' of item 1 has 2 elements"),
        ([{"a": 1}, {"b": 1}], "item 1 has no key 'a'"),
        ([{"a": 1}, {"a": 1, "b": 2}], "item 1 has a further key 'b'"),
        ([np.zeros(2), [0, 0]], "is a list, and that of item 0 is a array"),
        ([{"a": np.zeros(2)}, {"a": np.zeros(3)}], r"at 'a' cannot be one array .*pad_value"),
        ([np.zeros(()), np.zeros((2,))], "cannot be one array"),
    ],
)
def test_items_that_differ_are_refused_with_the_place(case):
    items, message = case
    with pytest.raises(UnfitRecordError, match=message) as caught:
        Collater()(items)
    assert isinstance(caught.value, ValueError)


def test_arrays_of_equal_shape_are_stacked():
    found = Collater()([np.full((2, 3), at) for at in range(4)])
    assert found.shape == (4, 2, 3)
    assert found[:, 0, 0].tolist() == [0, 1, 2, 3]


def test_arrays_are_padded_to_the_longest_and_a_multiple():
    arrays = [np.full((length, 2), length) for length in (4, 2, 3)]
    for multiple, length in [(1, 4), (2, 4), (3, 6), (8, 8)]:
        found = Collater(pad_value=-1, pad_to_multiple=multiple)(arrays)
        assert found["seqs"].shape == (3, length, 2)
        assert found["seq_lens"] == [4, 2, 3]
        assert found["is_ragged"] is True
        for row, size in zip(found["seqs"], (4, 2, 3), strict=True):
            assert (row[:size] == size).all()
            assert (row[size:] == -1).all()


def test_only_padding_makes_a_batch_ragged():
    arrays = [np.zeros(4), np.ones(4)]
    assert Collater(pad_value=0)(arrays)["is_ragged"] is False
    assert Collater(pad_value=0, pad_to_multiple=3)(arrays)["is_ragged"] is True


def test_a_padded_type_holds_all_elements():
    found = Collater(pad_value=0)([np.array([1, 2]), np.array([1.5])])
    assert found["seqs"].tolist() == [[1.0, 2.0], [1.5, 0.0]]


@pytest.mark.parametrize(
    ("value", "kind"), [(-1, "uint8"), (300, "uint8"), (0.5, "int64"), (-100, "bool")]
)
def test_a_value_that_the_elements_cannot_hold_is_refused_where_it_is_needed(value, kind):
    arrays = [np.ones(2, kind), np.ones(1, kind)]
    with pytest.raises(UnfitRecordError, match=f"pad_value {value} would become .* of type {kind}"):
        Collater(pad_value=value)(arrays)
    assert Collater(pad_value=value)(arrays[:1])["seqs"].tolist() == [[1, 1]]


def test_arrays_that_differ_in_more_than_length_are_refused():
    with pytest.raises(UnfitRecordError, match=r"further dimensions are \(2,\) and \(3,\)"):
        Collater(pad_value=0)([np.zeros((1, 2)), np.zeros((1, 3))])
    with pytest.raises(UnfitRecordError, match="without a dimension"):
        Collater(pad_value=0)([np.zeros(()), np.zeros(())])


def test_the_first_override_that_selects_an_element_counts():
    collater = Collater(
        pad_value=1,
        overrides=[
            CollateOptionsOverride("words[*].ids, other", pad_value=3, pad_to_multiple=3),
            CollateOptionsOverride("words[0].ids", pad_value=9),
            CollateOptionsOverride("whole"),
        ],
    )
    items = [
        {"words": [{"ids": np.arange(n)}], "other": np.arange(n), "rest": np.arange(n)}
        | {"whole": np.zeros(2)}
        for n in (1, 2)
    ]
    found = collater(items)
    assert found["words"][0]["ids"]["seqs"].tolist() == [[0, 3, 3], [0, 1, 3]]
    assert found["other"]["seqs"].tolist() == [[0, 3, 3], [0, 1, 3]]
    assert found["rest"]["seqs"].tolist() == [[0, 1], [0, 1]]
    assert found["whole"].shape == (2, 2)


def test_options_that_do_not_fit_are_refused():
    with pytest.raises(StreamDefinitionError, match="pad_value is needed, too"):
        Collater(pad_to_multiple=4)
    with pytest.raises(StreamDefinitionError, match="of the selector 'a' is 2"):
        CollateOptionsOverride("a", pad_to_multiple=2)
    with pytest.raises(StreamDefinitionError, match="pad_to_multiple is 0"):
        Collater(pad_value=0, pad_to_multiple=0)
    with pytest.raises(StreamArgumentError, match="pad_value is 'x'"):
        Collater(pad_value="x")
    with pytest.raises(StreamArgumentError, match="overrides has a str"):
        Collater(overrides=["a"])
    with pytest.raises(ValueError, match="is malformed"):
        CollateOptionsOverride("a..b")


def test_keys_of_samples_are_listed():
    records = [
        {"__restore_key__": ["pack", ["d", "s", str(n)]] * n, "__sources__": [{}] * n, "n": n}
        for n in (1, 2)
    ]
    found = Collater()(records)
    assert found["__restore_key__"] == [record["__restore_key__"] for record in records]
    assert found["__sources__"] == [[{}], [{}, {}]]
    assert found["n"] == [1, 2]


def test_a_collater_can_be_sent_to_processes():
    collater = Collater(0, 2, [CollateOptionsOverride("a", 1)])
    again = pickle.loads(pickle.dumps(collater))
    assert repr(again) == repr(collater)
    assert again([[1], [2]]) == [[1, 2]]


def test_a_stream_of_batches_resumes_anywhere():
    rows = [{"id": at, "length": at % 5} for at in range(23)]

    def stream():
        return read_sequence(rows).shuffle(7, seed=1).bucket(4).collate(num_parallel_calls=2)

    assert_resumes_anywhere(stream)
    assert next(iter(stream())).keys() == {"id", "length"}


def test_an_item_that_does_not_fit_is_a_failed_item():
    stream = read_sequence([[1, 2], [1, "a"], [3]]).collate().and_return(on_error="quarantine")
    assert list(stream) == [[1, 2], [3]]
    (failed,) = stream.quarantined
    assert (failed["stage"], failed["item"]) == ("map", [1, "a"])
    assert json.dumps(failed)


def test_tensors_are_stacked_and_padded():
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor([1, 2, 3]), torch.tensor([4])]
    found = Collater(pad_value=0, pad_to_multiple=4)([{"ids": one} for one in tensors])["ids"]
    assert found["seqs"].tolist() == [[1, 2, 3, 0], [4, 0, 0, 0]]
    assert found["seqs"].dtype == torch.int64
    assert Collater()([torch.zeros(2), torch.ones(2)]).shape == (2, 2)
    with pytest.raises(UnfitRecordError, match="cannot be one array"):
        Collater()(tensors)
