"""The numbers of records that enter and leave each part of a chain."""

from collections import Counter
from typing import Any

from dagster_dataops.checkpoints.publish.record_summary import funnel
from dagster_dataops.operators.outcomes.dispositions import disposition
from tests.journals import SpanTable


def table(records: int, failed: int = 0, **counts: Any) -> SpanTable:
    made = SpanTable()
    made.records, made.failed = records, failed
    made.counts = {f".seconds {name[1:]}": number for name, number in counts.items()}
    return made


def rows(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row.values())[1:5] for row in found]


def test_usual_records_enter_and_leave_every_part() -> None:
    found = funnel(["a", "b"], table(7, p0=0.5, p1=1.2345), Counter())
    assert rows(found) == [(7, 7, 0, 0)] * 2
    assert [(row["name"], row["seconds"]) for row in found] == [("a", 0.5), ("b", 1.234)]


def test_dropped_split_and_failed_records_count_where_it_happened() -> None:
    unusual = Counter(
        {
            disposition(emitted=0, dropped=["b: short"], entered=[1, 1]): 3,
            disposition(emitted=4, dropped={"b: short": 2}, entered=[1, 6, 4]): 1,
            disposition(failed=2): 2,
        }
    )
    found = funnel(["a", "b", "c"], table(10, failed=2), unusual)
    # 4 usual, 3 dropped in b, 1 made 6 of which b dropped 2, 2 failed in c
    assert rows(found) == [(10, 15, 0, 0), (15, 10, 5, 0), (10, 8, 0, 2)]


def test_records_that_failed_outside_the_parts_are_in_none() -> None:
    found = funnel(["a"], table(10, failed=3), Counter({disposition(failed=0): 1}))
    assert rows(found) == [(8, 7, 0, 1)]
