"""Lists of items of limited cost, and of items of like length."""

import pytest

from dagster_dataops import errors, read_sequence


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
