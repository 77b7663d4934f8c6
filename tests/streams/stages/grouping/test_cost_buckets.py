"""Lists of items of limited cost."""

from dagster_dataops import read_sequence


def test_dynamic_buckets_end_by_cost_and_by_size():
    def costs(**options):
        return list(read_sequence([1, 2, 3, 4, 5]).dynamic_bucket(5, lambda x: x, **options))

    assert costs() == [[1, 2, 3], [4, 5]]
    assert costs(max_num_examples=2) == [[1, 2], [3, 4], [5]]
    assert costs(min_num_examples=4) == [[1, 2, 3, 4], [5]]
    assert costs(min_num_examples=4, drop_remainder=True) == [[1, 2, 3, 4]]
