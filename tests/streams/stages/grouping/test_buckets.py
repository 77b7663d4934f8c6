"""Lists of items of limited cost, and of items of like length."""

import pytest

from dagster_dataops import create_bucket_sizes, errors, read_sequence
from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError


def test_dynamic_buckets_end_by_cost_and_by_size():
    def costs(**options):
        return list(read_sequence([1, 2, 3, 4, 5]).dynamic_bucket(5, lambda x: x, **options))

    assert costs() == [[1, 2, 3], [4, 5]]
    assert costs(max_num_examples=2) == [[1, 2], [3, 4], [5]]
    assert costs(min_num_examples=4) == [[1, 2, 3, 4], [5]]
    assert costs(min_num_examples=4, drop_remainder=True) == [[1, 2, 3, 4]]


def test_lengths_of_texts_lists_and_selected_columns_count():
    records = [{"a": "x", "b": [1, 2]}, {"a": "xyz", "b": []}, {"a": "", "b": [1]}]
    stream = read_sequence(records).bucket_by_length([(2, 2), (2, 3)], selector="a,b")
    assert list(stream) == [[records[0], records[2]], [records[1]]]
    with pytest.raises(errors.DataPipelineError, match="length 9 is above 2"):
        list(read_sequence([9]).bucket_by_length([(1, 2)]))
    skipping = read_sequence([0, 1, 9]).bucket_by_length(
        [(1, 2)], skip_below_min_examples=True, skip_above_max_examples=True
    )
    assert list(skipping) == [[1]]
    with pytest.raises(errors.DataPipelineError, match="a NoneType has no length"):
        list(read_sequence([None]).bucket_by_length([(1, 2)]))


def test_each_number_of_items_has_the_longest_length_that_fits():
    for most, longest in [(1, 1), (8, 8), (16, 4), (90, 30), (240, 24), (4000, 1000)]:
        sizes = create_bucket_sizes(max_num_elements=most, max_seq_len=longest)
        assert sizes[-1] == (most // longest, longest)
        for count, length in sizes:
            assert count * length <= most < count * (length + 1) or length == longest
        lengths = [length for _, length in sizes]
        assert lengths == sorted(set(lengths))


def test_short_items_and_multiples_are_chosen():
    sizes = create_bucket_sizes(
        max_num_elements=20, max_seq_len=10, min_seq_len=2, num_seqs_multiple_of=4
    )
    assert sizes == [(8, 2), (4, 3), (4, 4), (4, 5), (3, 6), (2, 10)]


def test_the_sizes_fit_bucket_by_length():
    sizes = create_bucket_sizes(max_num_elements=12, max_seq_len=4)
    stream = read_sequence([[0] * (at % 4 + 1) for at in range(60)])
    for bucket in stream.bucket_by_length(sizes):
        assert len(bucket) * max(map(len, bucket)) <= 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((8, 0), "max_seq_len is 0"),
        ((8, 3), "no multiple of max_seq_len, 3"),
        ((4, 8), "no multiple of max_seq_len"),
        ((8, 4, 5), "min_seq_len is 5, above max_seq_len, 4"),
        ((8, 4, 0), "min_seq_len is 0"),
        ((8, 4, 1, 0), "num_seqs_multiple_of is 0"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    names = ("max_num_elements", "max_seq_len", "min_seq_len", "num_seqs_multiple_of")
    with pytest.raises(StreamDefinitionError, match=message):
        create_bucket_sizes(**dict(zip(names, arguments, strict=False)))
    with pytest.raises(StreamArgumentError, match=r"max_num_elements is 8\.0"):
        create_bucket_sizes(max_num_elements=8.0, max_seq_len=4)
