"""Test that of several runs at one node of an object store one publishes, with the right bytes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import pytest
import xxhash

from dagster_dataops.checkpoints.journal.segment_reader import outputs
from dagster_dataops.checkpoints.places.bucket_claim import BucketClaim
from dagster_dataops.checkpoints.places.folder_place import FolderClaim
from dagster_dataops.checkpoints.publish.commit import commit
from dagster_dataops.errors import LostError
from dagster_dataops.foundation.places.result_store import ConflictError
from tests.faults.cases import cases
from tests.journals import (
    Checkpoint,
    RunFingerprint,
    SegmentWriter,
    Span,
    SpansEntry,
    checksum,
    fresh,
)
from tests.nodes import Manifest, NodeFolder, draft_of, existing, published
from tests.object_stores import (
    FakeStore,
    KilledError,
    Request,
    keep_at_most,
    killed_at,
    machine,
)

FINGERPRINT = RunFingerprint("6", "op", "options", "code", "input")
PIECES = [b'{"n":0}\n', b'{"n":1}\n', b'{"n":2}\n']
WHOLE = b"".join(PIECES)
REQUESTS = 22  # at least those of one run


@pytest.fixture(autouse=True, params=["small", "large"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let results be small, or so large that this machine keeps no byte that the bucket has."""
    if request.param == "large":
        keep_at_most(monkeypatch, outputs=0, result=0)


def run(folder: NodeFolder, name: str, pieces: list[bytes] = PIECES) -> bytes:
    """Settle each piece as a span, resuming earlier runs, and publish; return the result."""
    claim = folder.place.claim(name, 0)
    try:
        found = existing(folder.checkpoints, claim.segments)
        content = found[0] if found else fresh(folder.checkpoints)
        checkpoint = Checkpoint(content, FINGERPRINT, name, 0, claim.journal)
        gaps = checkpoint.table.gaps
        for number, piece in enumerate(pieces):
            span = Span(8 * number, 8, 1, 1, 0, 0, len(piece), 0, 0, checksum(piece))
            if any(gap.start <= span.start < gap.end for gap in gaps(_interval())):
                segment = checkpoint.new_segment()
                segment.append(piece)
                segment.close()
                checkpoint.journal(SpansEntry.of(segment.number, 0, [span]))
                checkpoint.sync()
        result = b"".join(_outputs(checkpoint))
        checkpoint.close()
        with claim.writer(folder.result) as draft:
            draft.write(result, len(pieces))
            draft.finish()
        claim.check()
        manifest = manifest_of(name, result, draft.modified_ns)
        commit(folder, manifest, claim.publishing, claim.draft)
        return result
    finally:
        claim.release()


def _interval():
    from dagster_dataops.workplaces import Interval

    return Interval(0, 24)


def _outputs(checkpoint: Checkpoint) -> Iterator[bytes]:
    damaged: list[int] = []
    places = checkpoint.table.ordered()
    yield from (data for _, data in outputs(checkpoint.segments, places, damaged))
    assert damaged == []


def manifest_of(name: str, result: bytes, modified_ns: int) -> Manifest:
    return Manifest(
        operator="op",
        rows_in=3,
        rows_out=3,
        dropped=0,
        failed=0,
        resumed=0,
        size_bytes=len(result),
        modified_ns=modified_ns,
        fingerprint="xxh3:" + xxhash.xxh3_128_hexdigest(result),
        run=name,
        attempts=[name],
        seconds=0,
        made_from=FINGERPRINT.to_json(),
    )


def node(scratch: Path, store: FakeStore) -> NodeFolder:
    return NodeFolder.of(machine(scratch, store) / "node")


def published_bytes(scratch: Path, store: FakeStore) -> bytes:
    found = published(node(scratch, store))
    assert found is not None
    assert found[0].path.read_bytes()
    assert found[1].fingerprint == found[0].fingerprint
    found[0].check_content()
    return found[0].path.read_bytes()


class Turns:
    """Lets two runs make their requests in a given order.

    Args:
        turns: How many requests each makes in turn; at the end both make all others, one after
            the other.
    """

    def __init__(self, *turns: int) -> None:
        self._left = list(turns)
        self._who = 0
        self._ended: set[int] = set()
        self._changed = threading.Condition()

    def request(self, who: int) -> Request:
        @contextmanager
        def turn() -> Iterator[None]:
            with self._changed:
                assert self._changed.wait_for(lambda: self._is_due(who), 60)
                yield
                if self._left:
                    self._left[0] -= 1
                    if self._left[0] <= 0:
                        self._next()

        return turn

    def _is_due(self, who: int) -> bool:
        return who == self._who or 1 - who in self._ended

    def _next(self) -> None:
        self._left.pop(0)
        self._who = 1 - self._who
        self._changed.notify_all()

    def end(self, who: int) -> None:
        with self._changed:
            self._ended.add(who)
            self._changed.notify_all()


def run_both(store: FakeStore, turns: Turns, scratch: Path, pieces: list[list[bytes]]) -> list[str]:
    """Run two runs on two machines, taking turns; return what became of each."""
    became = ["", ""]

    nodes = [node(scratch / str(who), store.seen_by(turns.request(who))) for who in (0, 1)]

    def one(who: int) -> None:
        try:
            run(nodes[who], f"run{who}", pieces[who])
            became[who] = "published"
        except LostError:
            became[who] = "lost"
        except BaseException as error:
            became[who] = repr(error)
            raise
        finally:
            turns.end(who)

    threads = [threading.Thread(target=one, args=(who,)) for who in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return became


def check_interleavings(deep: int, step: int, tmp_path: Path) -> int:
    seen = set()
    tried = 0
    for turns in product(range(1, REQUESTS, step), repeat=deep):
        place, store = tmp_path / "-".join(map(str, turns)), FakeStore()
        became = run_both(store, Turns(*turns), place, [PIECES, PIECES])
        seen.add(tuple(became))
        assert "published" in became, (turns, became)
        assert set(became) <= {"published", "lost"}, (turns, became)
        assert published_bytes(place / "reader", store) == WHOLE, turns
        assert run(node(place / "third", store), "third") == WHOLE
        assert published_bytes(place / "reader", store) == WHOLE, turns
        left = [key for key in store.objects if "/data/" in key]
        assert not left, (turns, left)
        assert len([key for key in store.objects if "/.versions/" in key]) == 1, turns
        tried += 1
    assert len(seen) > 1
    return tried


def test_two_runs_that_take_turns_once_publish_one_right_result(tmp_path):
    assert check_interleavings(1, 1, tmp_path) == REQUESTS - 1


@pytest.mark.slow
def test_two_runs_that_take_turns_twice_publish_one_right_result(tmp_path):
    assert check_interleavings(2, 3, tmp_path) == 49


@pytest.mark.slow
def test_two_runs_that_take_turns_three_times_publish_one_right_result(tmp_path):
    """In a campaign every order of requests is tried: 9,261 of them."""
    step = cases(4, campaign=1)
    assert check_interleavings(3, step, tmp_path) == len(range(1, REQUESTS, step)) ** 3


@pytest.mark.slow
def test_the_result_is_never_a_mixture_of_two_runs(tmp_path):
    theirs = [piece.replace(b"n", b"m") for piece in PIECES]
    for turns in product(range(1, REQUESTS, 4), repeat=2):
        place, store = tmp_path / "-".join(map(str, turns)), FakeStore()
        with suppress(LostError):
            run_both(store, Turns(*turns), place, [PIECES, theirs])
        found = published_bytes(place / "reader", store)
        head = store.objects["root/node/node_results.jsonl.json"][0]
        assert xxhash.xxh3_128_hexdigest(found).encode() in head


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("killed", range(18))
def test_a_run_that_is_killed_at_any_request_is_finished_by_the_next(tmp_path, killed, answered):
    store = FakeStore()
    with suppress(KilledError):
        run(node(tmp_path / "one", killed_at(store, killed, answered=answered)), "first")

    assert run(node(tmp_path / "two", store), "second") == WHOLE
    assert published_bytes(tmp_path / "three", store) == WHOLE
    assert published_bytes(tmp_path / "one", store) == WHOLE


def test_a_run_that_slept_is_refused_at_its_first_entry_even_after_a_publication(tmp_path):
    store = FakeStore()
    sleeper = node(tmp_path / "one", store).place.claim("sleeper", 0)
    folder = node(tmp_path / "one", store)
    checkpoint = Checkpoint(fresh(folder.checkpoints), FINGERPRINT, "sleeper", 0, sleeper.journal)
    run(node(tmp_path / "two", store), "second")

    writer = SegmentWriter(checkpoint.folder, checkpoint.take_segment_number())
    writer.append(PIECES[0])
    writer.close()
    span = Span(0, 8, 1, 1, 0, 0, 8, 0, 0, checksum(PIECES[0]))
    for _ in range(20):  # numbers whose objects were deleted may still be free
        checkpoint.journal(SpansEntry.of(writer.number, 0, [span]))
        with suppress(LostError):
            checkpoint.sync()
    draft_of(folder.result).write_bytes(b"junk\n")
    with pytest.raises(LostError):
        modified_ns = draft_of(folder.result).stat().st_mtime_ns
        commit(folder, manifest_of("sleeper", b"junk\n", modified_ns), sleeper.publishing)
    sleeper.release()

    assert published_bytes(tmp_path / "three", store) == WHOLE
    assert run(node(tmp_path / "four", store), "third") == WHOLE


def test_a_refused_entry_that_is_not_there_is_no_claim_of_an_unknown_run(tmp_path):
    class Refusing(FakeStore):
        refuses = False

        def replace(self, key, data, seen):
            if self.refuses:
                raise ConflictError(key)
            return super().replace(key, data, seen)

    store = Refusing()
    claim = node(tmp_path, store).place.claim("run", 0)
    checkpoint = Checkpoint(
        fresh(node(tmp_path, store).checkpoints), FINGERPRINT, "run", 0, claim.journal
    )
    store.refuses = True
    with pytest.raises(LostError, match=r"refuses to create .*/00000002, which is not there: an"):
        checkpoint.sync()
    claim.release()


def test_a_folder_of_a_local_disk_has_a_lock(tmp_path):
    claim = NodeFolder(tmp_path, "node").place.claim("run", 0)

    assert type(claim) is FolderClaim
    claim.release()


def test_a_folder_of_a_working_copy_has_a_claim_at_its_home(tmp_path):
    claim = node(tmp_path, FakeStore()).place.claim("run", 0)

    assert type(claim) is BucketClaim
    claim.release()
