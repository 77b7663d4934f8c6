"""``pack``: sequences joined to packs of a fixed number of elements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import read_sequence
from dagster_dataops.errors import (
    DataPipelineError,
    StreamArgumentError,
    StreamDefinitionError,
)
from dagster_dataops.testing import assert_resumes_anywhere
from tests.each import each

SEQUENCES = [[1, 2, 3, 0], [5, 6, 0], [9, 1, 2, 3, 0], [], [4, 0]]


def packs(stream):
    return [(one["seqs"], one["seq_lens"]) for one in stream]


def test_a_divided_sequence_goes_on_with_the_last_element_of_the_pack():
    stream = read_sequence(SEQUENCES).pack(3, 32, drop_remainder=False)
    assert packs(stream) == [
        ([1, 2, 3], [3]),
        ([3, 0, 5], [2, 1]),
        ([5, 6, 0], [3]),
        ([9, 1, 2], [3]),
        ([2, 3, 0], [3]),
        ([4, 0, 0], [2]),
    ]
    assert packs(read_sequence(SEQUENCES).pack(3, 32)) == packs(stream)[:-1]


def test_whole_sequences_are_packed_without_truncate():
    stream = read_sequence(SEQUENCES).pack(7, 32, pad_value=-1, truncate=False)
    assert packs(stream) == [
        ([1, 2, 3, 0, 5, 6, 0], [4, 3]),
        ([9, 1, 2, 3, 0, 4, 0], [5, 2]),
    ]
    short = read_sequence(SEQUENCES).pack(6, 32, pad_value=-1, truncate=False)
    assert packs(short) == [
        ([1, 2, 3, 0, -1, -1], [4]),
        ([5, 6, 0, -1, -1, -1], [3]),
        ([9, 1, 2, 3, 0, -1], [5]),
        ([4, 0, -1, -1, -1, -1], [2]),
    ]


def test_arrays_stay_arrays():
    arrays = [np.array(one, dtype=np.int16) for one in SEQUENCES]
    found = list(read_sequence(arrays).pack(3, 32, pad_value=7, drop_remainder=False))
    assert all(one["seqs"].dtype == np.int16 for one in found)
    assert found[-1]["seqs"].tolist() == [4, 0, 7]


def test_tensors_stay_tensors():
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor(one, dtype=torch.int32) for one in SEQUENCES]
    stream = read_sequence(tensors).pack(3, 32, drop_remainder=False, pinned_memory=True)
    assert [one["seqs"].tolist() for one in stream][1] == [3, 0, 5]
    assert next(iter(stream))["seqs"].dtype == torch.int32


def test_an_item_that_cannot_be_packed_is_a_failed_item():
    items = [[1], "ab", [[1]], 5, np.zeros((2, 2)), [2], np.array([3]), [9] * 4, [3]]
    stream = read_sequence(items).pack(3, 3, truncate=False).and_return(on_error="quarantine")
    assert packs(stream) == [([1, 2, 3], [1, 1, 1])]
    messages = [one["message"] for one in stream.quarantined]
    assert ["one dimension of numbers" in one for one in messages[:4]] == [True] * 4
    assert "the one before a list" in messages[4]
    assert "has 4 elements, more than 3" in messages[5]
    with pytest.raises(DataPipelineError, match="an item is a str"):
        list(read_sequence(["ab"]).pack(3, 3))


def test_the_state_holds_no_element():
    stream = read_sequence([list(range(1000))]).pack(10, 1000).and_return()
    next(iter(stream))
    assert "position" in stream.state_dict()
    assert len(str(stream.state_dict()["position"])) < 70


@each("truncate", [True, False])
@each("longest", [2, 3, 9])
def test_it_resumes_anywhere(truncate, longest):
    sequences = [one[: min(longest, 4)] if not truncate else one for one in SEQUENCES * 2]

    def stream():
        shuffled = read_sequence(sequences).shuffle(4, seed=1)
        return shuffled.pack(4, longest, truncate=truncate, drop_remainder=False)

    assert_resumes_anywhere(stream)


def packed(sequences, size, longest):
    """Return the packs of sequences: a simple model."""
    made, seqs, lengths = [], [], []
    for sequence in sequences:
        rest = sequence
        while rest:
            part = rest[: min(longest, size - len(seqs))]
            seqs, lengths = seqs + part, [*lengths, len(part)]
            is_full = len(seqs) == size
            again = is_full and len(part) < len(rest)  # the last element begins the next pack
            rest = rest[len(part) - again :]
            if is_full:
                made.append((seqs, lengths))
                seqs, lengths = [], []
    if seqs:
        made.append((seqs + [0] * (size - len(seqs)), lengths))
    return made


@given(
    st.lists(st.lists(st.integers(1, 9), max_size=9), max_size=9),
    st.integers(2, 7),
    st.integers(1, 9),
)
def test_packs_are_those_of_a_simple_model(sequences, size, longest):
    found = packs(read_sequence(sequences).pack(size, longest, drop_remainder=False))
    assert found == packed(sequences, size, longest)


def test_arguments_that_do_not_fit_are_refused():
    stream = read_sequence([[1]])
    for size, longest in [(0, 1), (1, 1), (2, 0)]:
        with pytest.raises(StreamDefinitionError, match="must be at least"):
            stream.pack(size, longest)
    assert packs(stream.pack(1, 1, truncate=False)) == [([1], [1])]
    with pytest.raises(StreamArgumentError, match="max_seq_len is None"):
        stream.pack(3)
    with pytest.raises(StreamArgumentError, match="'sizes' is unknown"):
        stream.pack(3, 3, sizes=4)


def test_the_call_of_windows_still_works_with_a_warning():
    def total(group):
        return {"sum": sum(group)}

    def whole(window):
        return [window]

    stream = read_sequence([1, 2, 3])
    wanted = list(stream.pack_windows(2, whole, total))
    assert wanted == [{"sum": 3}, {"sum": 3}]
    calls = [
        lambda: stream.pack(2, whole, total),
        lambda: stream.pack(2, whole, pack=total),
        lambda: stream.pack(size=2, select=whole, pack=total),
    ]
    for call in calls:
        with pytest.warns(DeprecationWarning, match="is named pack_windows now") as caught:
            assert list(call()) == wanted
        assert caught[0].filename == __file__
