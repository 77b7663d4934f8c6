from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import Drop, build_definitions, data, pipeline
from dagster_dataops.errors import DefinitionError, OperatorOptionError

RECORDS = [{"id": n, "user": n % 50, "text": f"text {n}"} for n in range(2000)]


def test_the_fractions_name_the_outputs_and_their_shares(root: Path) -> None:
    found = data.sample.Split()(RECORDS)
    assert list(found) == ["train", "val", "test"]
    assert sorted((one for part in found.values() for one in part), key=RECORDS.index) == RECORDS
    assert [len(part) for part in found.values()] == pytest.approx([1800, 100, 100], abs=40)
    other = data.sample.Split({"a": 0.5, "b": 0.5}, seed=1)(RECORDS)
    assert all(900 < len(part) < 1100 for part in other.values())


def test_adding_records_and_columns_moves_no_others(root: Path) -> None:
    halves = {"a": 0.5, "b": 0.5}
    before = data.sample.Split(halves, hash_key="id")(RECORDS[::2])["a"]
    changed = [dict(reversed({**record, "more": 1}.items())) for record in RECORDS]
    after = data.sample.Split(halves, hash_key="id")(changed)["a"]
    assert [one["id"] for one in after if not one["id"] % 2] == [one["id"] for one in before]
    whole = data.sample.Split(halves)(RECORDS)["a"]
    backwards = data.sample.Split(halves)([dict(reversed(one.items())) for one in RECORDS])["a"]
    assert [one["id"] for one in backwards] == [one["id"] for one in whole]


def test_groups_stay_together(root: Path) -> None:
    found = data.sample.Split({"a": 0.5, "b": 0.5}, group_key="user")(RECORDS)
    users = [{one["user"] for one in part} for part in found.values()]
    assert users[0].isdisjoint(users[1])
    assert users[0] | users[1] == set(range(50))


def test_the_outputs_are_results_in_pipelines_and_assets(root: Path, tmp_path: Path) -> None:
    with pipeline("docs") as ppl:
        ppl.split = data.sample.Split({"big": 0.75, "small": 0.25}, hash_key="id")
        ppl.add("count", lambda records: [{"n": len(records)}], inputs=[ppl.split.small])
    assert 400 < ppl(RECORDS)[0]["n"] < 600
    path = tmp_path / "docs.jsonl"
    path.write_text('{"id": 1}\n')
    keys = {key.path[-1] for key in build_definitions(ppl, source=path).resolve_all_asset_keys()}
    assert {"big", "small"} <= keys


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"ratios": {"a": 0.5, "b": 0.4}}, DefinitionError, "sum 1"),
        ({"ratios": {"a": 1.5, "b": -0.5}}, DefinitionError, "positive"),
        ({"ratios": {"a": 1}}, OperatorOptionError, "2 to 64 different names"),
        ({"ratios": {"a b": 0.5, "b": 0.5}}, OperatorOptionError, "no plain identifier"),
        ({"hash_key": "id", "group_key": "user"}, DefinitionError, "not both"),
    ],
)
def test_wrong_options_of_a_split_are_refused(given: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        data.sample.Split(**given)


@pytest.mark.slow
def test_a_rate_keeps_that_share_and_a_higher_one_the_same_and_more(root: Path) -> None:
    few = data.sample.Rate(0.25)(RECORDS)
    more = data.sample.Rate(0.5, hash_key=["id", "user", "text"])(RECORDS)
    assert 400 < len(few) < 600
    assert 900 < len(more) < 1100
    most = data.sample.Rate(0.5)(RECORDS)
    assert [record for record in most if record in few] == few
    assert data.sample.Rate(0)(RECORDS) == []
    assert data.sample.Rate(1)(RECORDS) == RECORDS
    assert data.sample.Rate(0.25, seed=1)(RECORDS) != few
    with pytest.raises(DefinitionError, match="'ratio' must be between 0 and 1"):
        data.sample.Rate(1.1)


@pytest.mark.parametrize("value", [None, 1 << 60, "é", [1, {"b": 1, "a": 2}], 1.5, "a\ud800"])
def test_any_record_has_a_hash(value: Any) -> None:
    def share(record: dict[str, Any], **options: Any) -> float:
        """Return the smallest ratio in hundredths with which a record is kept."""
        rates = (data.sample.Rate(part / 100, **options) for part in range(101))
        return next(
            at for at, rate in enumerate(rates) if not isinstance(rate.forward(record), Drop)
        )

    record = {"a": value}
    assert 0 < share(record) <= 100
    by_seed = {share(record, hash_key="a", seed=seed) for seed in range(4)}
    assert len(by_seed) > 1
    assert share(record, hash_key="a.b") == share({}, hash_key="a.b")
