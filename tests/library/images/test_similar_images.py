"""``images.NearDuplicate``: the result of comparing each record with all kept ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.images import near_hashes
from tests.each import each
from tests.examples import at_most
from tests.execution.helpers import TINY, cut_by, node, run, write_input
from tests.library.media import picture, saved, stored
from tests.nodes import ResumePolicy


def near(one: int, other: int, distance: int) -> bool:
    return (one ^ other).bit_count() <= distance


def kept_by_hand(hashes: list[int], distance: int) -> list[int]:
    kept: list[int] = []
    owners = []
    for position, value in enumerate(hashes):
        owner = next((one for one in kept if near(hashes[one], value, distance)), position)
        owners.append(owner)
        if owner == position:
            kept.append(position)
    return owners


def connected_by_hand(hashes: list[int], distance: int) -> list[int]:
    firsts = list(range(len(hashes)))
    changed = True
    while changed:
        changed = False
        for one in range(len(hashes)):
            for other in range(one):
                if near(hashes[one], hashes[other], distance) and firsts[one] != firsts[other]:
                    firsts[one] = firsts[other] = min(firsts[one], firsts[other])
                    changed = True
    return firsts


def operator(**options: Any) -> Any:
    return data.images.NearDuplicate(
        image_hash_key="hash", cluster_key="cluster", _concurrency_mode="single", **options
    )


def records(hashes: list[int]) -> list[dict[str, Any]]:
    return [{"hash": f"{value:016x}"} for value in hashes]


def owners(found: list[dict[str, Any]]) -> list[int]:
    return [record["cluster"]["id"] for record in found]


def related(seed: int, groups: int, each_group: int, flips: int) -> list[int]:
    """Return hashes in groups, each some bits away from that of its group, in random order."""
    random = np.random.default_rng(seed)
    found = []
    for start in random.integers(0, 2**63, groups).tolist():
        for _ in range(each_group):
            bits = random.choice(64, random.integers(0, flips + 1), replace=False).tolist()
            found.append(start ^ sum(1 << bit for bit in bits))
    return [found[number] for number in random.permutation(len(found))]


@each("distance", [0, 1, 3, 4, 8, 15])
def test_records_are_dropped_for_the_first_kept_one(distance: int) -> None:
    hashes = related(distance, 40, 6, 6)
    found = operator(max_distance=distance)(records(hashes))

    expected = kept_by_hand(hashes, distance)
    assert owners(found) == expected
    assert [one["cluster"]["kept"] for one in found] == [
        owner == position for position, owner in enumerate(expected)
    ]
    assert [one["cluster"]["size"] for one in found] == [expected.count(one) for one in expected]


@each("distance", [0, 2, 4, 8])
def test_components_have_their_first_record(distance: int) -> None:
    hashes = related(distance, 12, 5, 5)
    found = operator(max_distance=distance, linkage="component")(records(hashes))

    assert owners(found) == connected_by_hand(hashes, distance)


@settings(max_examples=at_most(60), deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.integers(0, 3))
def test_any_hashes_have_the_result_of_comparing_all(hashes: list[int], distance: int) -> None:
    distinct = np.array(list(dict.fromkeys(hashes)), np.uint64)
    found = near_hashes.nearest_kept(distinct, distance, 1 << 20)
    assert found.tolist() == kept_by_hand(distinct.tolist(), distance)
    found = near_hashes.first_connected(distinct, distance, 1 << 20)
    assert found.tolist() == connected_by_hand(distinct.tolist(), distance)


@pytest.mark.slow
@each("distance", [1, 4, 8])
def test_sorted_hashes_find_the_same_pairs_as_all(
    distance: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_hashes, "_UNSORTED", 50)
    monkeypatch.setattr(near_hashes, "_MOST_PAIRS", 400)
    monkeypatch.setattr(near_hashes, "_ROWS", 64)
    hashes = np.array(list(dict.fromkeys(related(7, 150, 6, 5))), np.uint64)
    masks = near_hashes.masks_for(distance, 10_000_000, 1 << 40)
    assert masks
    by_all = near_hashes.nearest_kept(hashes, distance, 0)
    components = near_hashes.first_connected(hashes, distance, 0)

    with monkeypatch.context() as patch:
        patch.setattr(near_hashes, "masks_for", lambda *_: masks)
        sorted_kept = near_hashes.nearest_kept(hashes, distance, 0)
        sorted_components = near_hashes.first_connected(hashes, distance, 0)
    assert sorted_kept.tolist() == by_all.tolist()
    assert sorted_components.tolist() == components.tolist()
    assert by_all.tolist() == kept_by_hand(hashes.tolist(), distance)


@each("distance", range(16))
def test_near_hashes_agree_in_the_bits_of_a_mask(distance: int) -> None:
    random = np.random.default_rng(distance)
    for count in (10**6, 10**8, 10**10):
        masks = near_hashes.masks_for(distance, count, 1 << 50)
        for _ in range(200):
            bits = random.choice(64, distance, replace=False).tolist()
            flipped = sum(1 << bit for bit in bits)
            assert not masks or any(not flipped & mask for mask in masks)


def test_sorted_lists_have_a_limit_of_memory() -> None:
    assert near_hashes.masks_for(4, 10**6, 1 << 40)
    assert near_hashes.masks_for(4, 10**6, 1 << 20) == []
    assert near_hashes.masks_for(4, 1000, 1 << 40) == []  # comparing all is faster


def test_files_are_compared_by_what_they_show(tmp_path: Path) -> None:
    image, other = picture(200, 150), picture(200, 150, seed=1)
    forms = [
        saved(image.resize((100, 75)), "JPEG"),
        saved(other, "PNG"),
        saved(image, "PNG"),
        saved(image, "JPEG", quality=30),
    ]
    given = [stored(tmp_path, f"{n}", form) for n, form in enumerate(forms)]
    first, largest, by = (
        data.images.NearDuplicate(_concurrency_mode="single", **options)
        for options in ({}, {"keep": "largest"}, {"keep": "rank"})
    )

    assert first(given) == [given[0], given[1]]
    assert largest(given) == [given[1], given[2]]
    ranked = [{**one, "rank": rank} for one, rank in zip(given, [1, None, 2, 3], strict=True)]
    assert by(ranked) == [ranked[1], ranked[3]]
    named = data.images.NearDuplicate(keep="longest", _concurrency_mode="single")
    columns = [{**one, "longest": one["rank"]} for one in ranked]
    assert named(columns) == [columns[1], columns[3]]


@pytest.mark.parametrize(
    "value", [None, 7, "", "0" * 15, "g" * 16, "+" + "0" * 15, "0x" + "0" * 14]
)
def test_what_is_no_hash_is_an_error_of_its_record(value: object) -> None:
    with pytest.raises(UnfitRecordError, match="column 'hash' must hold a hash of 16"):
        operator().sketch({"file": "a", "hash": value})


def test_a_run_that_was_stopped_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = write_input(tmp_path / "input.jsonl", records(related(1, 20, 3, 4)))
    expected = run(operator(), dataset, node(tmp_path / "expected")).dataset
    stopped, folder = operator(), node(tmp_path / "stopped")
    sketch = type(stopped).sketch

    def stopping(self: Any, record: dict[str, Any]) -> Any:
        if record["hash"] == f"{related(1, 20, 3, 4)[40]:016x}":
            raise KeyboardInterrupt
        return sketch(self, record)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        cut_by(patch, TINY)
        patch.setattr(stopped, "sketch", stopping.__get__(stopped))
        run(stopped, dataset, folder, run="stopped", resume=ResumePolicy.AUTO)
    report = run(operator(), dataset, folder, resume=ResumePolicy.AUTO)

    assert report.notes[0].startswith("resuming: ")
    assert folder.result.read_bytes() == expected.path.read_bytes()


def test_no_records_have_no_result() -> None:
    assert operator()([]) == []


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_every_mode_keeps_the_same_records(mode: str, tmp_path: Path) -> None:
    forms = [saved(picture(64, 64, seed=number % 4), "PNG") for number in range(12)]
    given = [stored(tmp_path, f"{n}.png", form) for n, form in enumerate(forms)]

    kept = data.images.NearDuplicate(_concurrency_mode=mode, _max_workers=2)(given)
    assert kept == given[:4]
