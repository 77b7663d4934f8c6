from dagster_dataops.library.stats.value_summary import ValueSummary
from dagster_dataops.records import encode


def summary_of(values, bins=4, top=2):
    summary = ValueSummary(bins, top)
    for value in values:
        summary.add(value)
    return summary.result()


def test_numbers_are_measured():
    found = summary_of([1, 2, 2, 5, None])

    assert found["count"] == 4
    assert found["missing"] == 1
    assert (found["sum"], found["mean"], found["min"], found["max"]) == (10, 2.5, 1, 5)
    assert abs(found["std"] - 3**0.5) < 1e-12
    assert found["percentiles"]["50"] == 2
    assert found["histogram"] == {"edges": [1.0, 2.0, 3.0, 4.0, 5], "counts": [1, 2, 0, 1]}
    assert found["top"] == [{"value": 2, "count": 2}, {"value": 1, "count": 1}]


def test_equal_numbers_are_one_bin():
    assert summary_of([3, 3])["histogram"] == {"edges": [3, 3], "counts": [2]}


def test_texts_and_truth_values_are_counted():
    found = summary_of(["a", "b", "a", True, 1, ["x"]], top=9)

    assert found["top"][0] == {"value": "a", "count": 2}
    assert {"value": True, "count": 1} in found["top"]
    assert {"value": "['x']", "count": 1} in found["top"]


def test_columns_of_nothing_else_have_no_measures():
    assert summary_of([None, None]) == {"count": 0, "missing": 2, "top": []}


def test_many_different_values_are_forgotten_with_a_known_error():
    values = [f"v{number}" for number in range(30_000)] + ["often"] * 50

    found = summary_of(values)

    assert found["top"][0]["value"] == "often"
    assert found["top_error"] == 1
    assert found["top"][0]["count"] == 50


def test_what_is_too_large_to_be_calculated_is_missing():
    found = summary_of([-1.7e308, 1.7e308, 1.7e308, 1.7e308], bins=2)

    assert (found["mean"], found["min"], found["max"]) == (None, -1.7e308, 1.7e308)
    assert found["histogram"]["counts"] == [4]
    encode(found)
