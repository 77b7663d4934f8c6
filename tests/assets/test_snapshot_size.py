"""The snapshot of definitions stays small beside that of plain assets of Dagster."""

import pytest

from benchmarks.defining import CONTENDERS, MOST, of_process

pytestmark = pytest.mark.slow

PIPELINES, NODES = 15, 20


@pytest.fixture(scope="module")
def sizes() -> dict[str, dict[str, float]]:
    return {name: of_process(name, PIPELINES, NODES) for name in CONTENDERS}


@pytest.mark.parametrize("what", ["sent", "whole"])
@pytest.mark.parametrize("name", [name for name in CONTENDERS if name != "plain"])
def test_the_snapshot_without_and_with_jobs_is_at_most_half_as_large_again(
    name: str, what: str, sizes: dict[str, dict[str, float]]
) -> None:
    assert sizes[name][what] / sizes["plain"][what] <= MOST


def test_operators_have_no_more_jobs_than_plain_assets(
    sizes: dict[str, dict[str, float]],
) -> None:
    assert {row["jobs"] for row in sizes.values()} == {PIPELINES + 1}
