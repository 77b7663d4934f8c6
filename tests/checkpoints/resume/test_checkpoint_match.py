import os
import shutil
import types
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest

from dagster_dataops import Operational, RunReport
from dagster_dataops.operators.definition.spec import Invocation
from tests.execution.helpers import TINY, cut_by, lines, node, run, write_input
from tests.journals import Checkpoint, RunFingerprint, Span, SpansEntry, checksum, fresh
from tests.nodes import ResumePolicy, content_digest
from tests.registries import OperatorRegistry

_RECORDS = [{"n": n} for n in range(20)]
_SWITCH: Annotated[Any, Operational] = types.SimpleNamespace(stop_at=None, calls=[])


class Sum(tuple):
    """Numbers that are added; version 0.2 did not tell it from a list."""

    __slots__ = ()

    def __new__(cls, *numbers: int) -> Any:
        return super().__new__(cls, numbers)

    def __radd__(self, other: int) -> int:
        return other + sum(self)


class Unknown:
    """A number whose content has no digest, and which holds a resource."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None: ...

    def __radd__(self, other: int) -> int:
        return other + self._number


def _operator(
    registry: OperatorRegistry, factor: int = 2, add: Any = 0, mode: str = "single"
) -> Any:
    """Return ``n * factor + add``; ``factor`` is part of its code, ``add`` an option."""

    @registry("data.resuming", _concurrency_mode=mode)
    def scale(record, add=0):
        if record["n"] == _SWITCH.stop_at:
            raise KeyboardInterrupt
        _SWITCH.calls.append(record["n"])
        return {"n": record["n"] * factor + add}

    return scale(add=add)


def _interrupt(operator: Any, dataset: Any, path: Path, stop_at: int, **context: Any) -> None:
    _SWITCH.stop_at = stop_at
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        cut_by(patch, TINY)
        run(operator, dataset, node(path), **{"run": "killed", **context})
    _SWITCH.stop_at = None


@pytest.fixture(autouse=True)
def calls() -> list[int]:
    _SWITCH.stop_at, _SWITCH.calls = None, []
    return _SWITCH.calls


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    return write_input(tmp_path / "input.jsonl", _RECORDS)


def _go_on(
    operator: Any,
    dataset: Any,
    path: Path,
    policy: ResumePolicy = ResumePolicy.AUTO,
    **context: Any,
) -> RunReport:
    _SWITCH.calls.clear()
    return run(operator, dataset, node(path), run="next", resume=policy, **context)


def _expected(factor: int = 2, add: int = 0) -> bytes:
    return lines({"n": n * factor + add} for n in range(20))


def test_an_unfinished_run_resumes_where_it_stopped(
    tmp_path: Path, dataset, registry, calls
) -> None:
    _interrupt(_operator(registry), dataset, tmp_path, 12)
    report = _go_on(_operator(registry), dataset, tmp_path)
    assert calls == list(range(12, 20))
    assert report.notes == ("resuming: 12 records settled by run killed",)
    assert report.manifest.resumed == 12
    assert report.manifest.attempts == ["killed", "next"]
    assert node(tmp_path).result.read_bytes() == _expected()
    assert not node(tmp_path).checkpoints.exists()


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_a_run_resumes_in_another_mode(tmp_path: Path, dataset, registry, mode: str) -> None:
    _interrupt(_operator(registry), dataset, tmp_path, 12)
    report = _go_on(_operator(OperatorRegistry(print), mode=mode), dataset, tmp_path)
    assert report.manifest.resumed == 12
    assert node(tmp_path).result.read_bytes() == _expected()


def _afresh(tmp_path: Path, registry, calls, before: Any, after: Any, dataset: Any) -> str:
    """Interrupt ``before``, run ``after`` and return the note of starting afresh."""
    _interrupt(before, write_input(tmp_path / "input.jsonl", _RECORDS), tmp_path, 12)
    kept: list[bool] = []

    def stop() -> None:
        kept.append((node(tmp_path).checkpoints / "1" / "journal").exists())

    report = run(
        after, dataset(), node(tmp_path), run="x", resume=ResumePolicy.AUTO, should_stop=stop
    )
    assert kept
    assert all(kept)
    assert report.manifest.resumed == 0
    assert not node(tmp_path).checkpoints.exists()
    (note,) = report.notes
    assert note.startswith("starting afresh, without 12 records settled by run killed, because")
    assert note.endswith("their checkpoint is kept until this run's result is published")
    return note


@pytest.mark.parametrize(
    ("rows", "option", "factor", "reason"),
    [
        (_RECORDS, {"add": 1}, 2, "its options have changed since"),
        (_RECORDS, {}, 3, "its code has changed since"),
        (_RECORDS, {"add": 1}, 3, "its options and its code have changed since"),
        ([{"n": 9}, *_RECORDS[1:]], {}, 2, "the input has changed since"),  # with the same size
        (_RECORDS[:15], {}, 2, "the input has changed since"),
        ([*_RECORDS, {"n": 20}], {}, 2, "the input has changed since"),
    ],
    ids=["options", "code", "both", "input", "shorter", "longer"],
)
def test_another_operator_or_input_starts_afresh(
    tmp_path: Path,
    registry,
    calls,
    rows: list[dict[str, int]],
    option: dict[str, int],
    factor: int,
    reason: str,
) -> None:
    after = _operator(OperatorRegistry(print) if factor == 3 else registry, factor, **option)
    other = lambda: write_input(tmp_path / "input.jsonl", rows)  # noqa: E731
    note = _afresh(tmp_path, registry, calls, _operator(registry), after, other)
    assert f"because {reason}" in note
    found = lines({"n": row["n"] * factor + option.get("add", 0)} for row in rows)
    assert node(tmp_path).result.read_bytes() == found


def test_another_upstream_result_starts_afresh(tmp_path: Path, registry, calls) -> None:
    def upstream(shift: int) -> Any:
        source = write_input(tmp_path / "source.jsonl", [{"n": n + shift} for n in range(20)])
        return run(_operator(registry), source, node(tmp_path, "upstream")).dataset

    _interrupt(_operator(registry), upstream(0), tmp_path, 12)
    report = _go_on(_operator(registry), upstream(100), tmp_path)
    assert "because the input has changed since" in report.notes[0]
    assert node(tmp_path).result.read_bytes() == lines({"n": (n + 100) * 4} for n in range(20))


@pytest.mark.parametrize("reuse", [True, False], ids=["with digest", "by checksums"])
@pytest.mark.parametrize("how", ["touched", "copied", "rewritten"])
def test_the_same_content_with_another_time_is_resumed(
    tmp_path: Path, dataset, registry, calls, how: str, reuse: bool
) -> None:
    _interrupt(_operator(registry), dataset, tmp_path, 12)
    if how == "touched":
        os.utime(dataset.path, ns=(1, 1))
    elif how == "copied":
        dataset = type(dataset).of_file(shutil.copy(dataset.path, tmp_path / "copy.jsonl"))
    else:
        dataset = write_input(dataset.path, _RECORDS)
    report = _go_on(_operator(registry), dataset, tmp_path, reuse_finished=reuse)
    assert report.manifest.resumed == 12
    assert calls == list(range(12, 20))
    assert node(tmp_path).result.read_bytes() == _expected()


def test_changes_after_the_settled_part_are_taken_up(
    tmp_path: Path, dataset, registry, calls
) -> None:
    _interrupt(_operator(registry), dataset, tmp_path, 12)
    changed = [*_RECORDS[:15], {"n": 99}, *_RECORDS[16:]]
    report = _go_on(_operator(registry), write_input(dataset.path, changed), tmp_path)
    assert report.manifest.resumed == 12
    assert node(tmp_path).result.read_bytes() == lines({"n": r["n"] * 2} for r in changed)


def test_across_code_keeps_records_finished_by_the_old_code(
    tmp_path: Path, dataset, registry, calls
) -> None:
    _interrupt(_operator(registry), dataset, tmp_path, 12)
    changed = _operator(OperatorRegistry(print), factor=3)
    report = _go_on(changed, dataset, tmp_path, ResumePolicy.ACROSS_CODE)
    assert report.notes[0].endswith("code has changed since, those records are kept as asked")
    assert calls == list(range(12, 20))
    mixed = [{"n": n * (2 if n < 12 else 3)} for n in range(20)]
    assert node(tmp_path).result.read_bytes() == lines(mixed)


def test_records_kept_of_older_code_are_not_kept_by_a_run_that_did_not_ask_for_it(
    tmp_path: Path, dataset, registry, calls
) -> None:
    _interrupt(_operator(registry), dataset, tmp_path, 8)
    mended = _operator(OperatorRegistry(print), factor=3)
    _interrupt(mended, dataset, tmp_path, 12, resume=ResumePolicy.ACROSS_CODE, run="across")
    report = _go_on(mended, dataset, tmp_path)
    assert "its code has changed since" in report.notes[0]
    assert calls == list(range(20))
    assert node(tmp_path).result.read_bytes() == _expected(factor=3)


def test_across_code_refuses_other_options(tmp_path: Path, dataset, registry, calls) -> None:
    _interrupt(_operator(registry), dataset, tmp_path, 12)
    report = _go_on(_operator(registry, add=1), dataset, tmp_path, ResumePolicy.ACROSS_CODE)
    assert report.manifest.resumed == 0
    assert node(tmp_path).result.read_bytes() == _expected(add=1)


def test_never_resuming_starts_afresh_with_a_log_line(
    tmp_path: Path, dataset, registry, calls
) -> None:
    _interrupt(_operator(registry), dataset, tmp_path, 12)
    report = _go_on(_operator(registry), dataset, tmp_path, ResumePolicy.NEVER)
    assert "because resuming is switched off" in report.notes[0]
    assert calls == list(range(20))


def test_the_matching_one_of_several_checkpoints_is_found(
    tmp_path: Path, dataset, registry, calls
) -> None:
    _interrupt(_operator(registry, add=1), dataset, tmp_path, 12)
    _interrupt(_operator(registry, add=2), dataset, tmp_path, 6, resume=ResumePolicy.AUTO)
    report = _go_on(_operator(registry, add=1), dataset, tmp_path)
    assert report.manifest.resumed == 12
    assert node(tmp_path).result.read_bytes() == _expected(add=1)


def test_a_resumed_run_names_the_runs_that_settled_its_records(
    tmp_path: Path, dataset, registry, calls
) -> None:
    auto = ResumePolicy.AUTO
    _interrupt(_operator(registry), dataset, tmp_path, 12, run="first", resume=auto)
    _interrupt(_operator(registry), dataset, tmp_path, 18, run="second", resume=auto)
    report = _go_on(_operator(registry), dataset, tmp_path)
    note = "resuming: 18 records settled by run second and 1 before it"
    assert report.notes == (note,)
    assert report.manifest.resumed_from == ["first", "second"]
    assert (report.rows_resumed, report.resumed_from) == (18, ("first", "second"))
    reused = run(_operator(registry), dataset, node(tmp_path), run="later", reuse_finished=True)
    assert (reused.rows_resumed, reused.resumed_from) == (20, (report.manifest.run,))


def test_a_checkpoint_of_another_format_stays_until_the_new_result_is_published(
    tmp_path: Path, registry, calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dagster_dataops.checkpoints.folder import run_fingerprint

    dataset = write_input(tmp_path / "input.jsonl", _RECORDS)
    with monkeypatch.context() as patch:
        patch.setattr(run_fingerprint, "FORMAT", "2-little")
        _interrupt(_operator(registry), dataset, tmp_path, 12)
        (kept,) = node(tmp_path).checkpoints.glob("*/journal")
        before = kept.read_bytes()
    _interrupt(_operator(registry), dataset, tmp_path, 6, resume=ResumePolicy.ACROSS_CODE)
    assert kept.read_bytes() == before
    report = _go_on(_operator(registry), dataset, tmp_path)
    assert "of run killed has format 2-little; this version reads" in report.notes[0]
    assert report.manifest.resumed == 6
    assert node(tmp_path).result.read_bytes() == _expected()


def test_an_option_without_known_content_never_equals_another(
    tmp_path: Path, dataset, registry, calls
) -> None:

    def operator() -> Any:
        return _operator(registry, add=Unknown(0))

    told = f"option 'add' (a {Unknown.__module__}.Unknown) cannot be compared"
    _interrupt(operator(), dataset, tmp_path, 12)
    report = _go_on(operator(), dataset, tmp_path)
    assert "starting afresh, without 12 records" in report.notes[0]
    assert told in report.notes[0]
    assert "Annotated[..., Operational]" in report.notes[0]
    assert calls == list(range(20))
    assert node(tmp_path).result.read_bytes() == _expected()
    first = run(operator(), dataset, node(tmp_path / "other"))
    assert "this run cannot be resumed" in first.notes[0]


_TEXTS = (text for text in "ab")


def test_a_constant_without_known_content_never_equals_another(
    tmp_path: Path, dataset, registry, calls
) -> None:

    @registry("data.naming", _concurrency_mode="single")
    def name(record: dict) -> dict:
        if record["n"] == _SWITCH.stop_at:
            raise KeyboardInterrupt
        _SWITCH.calls.append(record["n"])
        return record if _TEXTS else {}

    told = f"the constant _TEXTS of {__name__} (a builtins.generator) cannot be compared"
    _interrupt(name(), dataset, tmp_path, 12)
    report = _go_on(name(), dataset, tmp_path)
    assert "starting afresh, without 12 records" in report.notes[0]
    assert told in report.notes[0]
    assert "Annotated[Any, Operational]" in report.notes[0]
    assert calls == list(range(20))
    first = run(name(), dataset, node(tmp_path / "other"))
    assert "this run cannot be resumed: the constant _TEXTS" in first.notes[0]
    _interrupt(name(), dataset, tmp_path / "kept", 12)
    kept = _go_on(name(), dataset, tmp_path / "kept", ResumePolicy.ACROSS_CODE)
    assert "resuming: 12 records" in kept.notes[0]


def test_the_log_says_that_another_version_compared_by_other_rules(
    tmp_path: Path, dataset, registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:  # as version 0.2 wrote it
        patch.setattr(Invocation, "options_digest", "0123456789abcdef0123456789abcdef")
        _interrupt(_operator(registry, add=Sum(1, 2)), dataset, tmp_path, 12)
    report = _go_on(_operator(registry, add=Sum(1, 2)), dataset, tmp_path)
    assert "without 12 records" in report.notes[0]
    told = "another version of dagster-dataops compared its options by other rules"
    assert told in report.notes[0]


def test_a_checkpoint_that_lost_its_fingerprint_is_not_used(
    tmp_path: Path, dataset, registry, calls
) -> None:
    _interrupt(_operator(registry), dataset, tmp_path, 12)
    journal = node(tmp_path).checkpoints / "1" / "journal"
    data = journal.read_bytes()
    # Both the frame that says so and its copy.
    journal.write_bytes(data.replace(b'"fingerprint"', b'"fingerprinX"'))
    report = _go_on(_operator(registry), dataset, tmp_path)
    assert "because its operator, options, code and input are unknown" in report.notes[0]
    assert node(tmp_path).result.read_bytes() == _expected()


def test_records_given_as_a_list_resume_by_their_digest(tmp_path: Path, registry, calls) -> None:
    from tests.nodes import write_records

    path = tmp_path / "list.jsonl"
    _interrupt(_operator(registry), write_records(path, _RECORDS, "list"), tmp_path, 12)
    report = _go_on(_operator(registry), write_records(path, _RECORDS, "list"), tmp_path)
    assert report.notes == ("resuming: 12 of 20 records settled by run killed",)
    assert calls == list(range(12, 20))


@pytest.mark.parametrize("policy", [ResumePolicy.AUTO, ResumePolicy.NEVER])
def test_a_finished_run_leaves_nothing_to_resume(
    tmp_path: Path, dataset, registry, calls, policy
) -> None:
    run(_operator(registry), dataset, node(tmp_path))
    report = _go_on(_operator(registry), dataset, tmp_path, policy)
    assert calls == list(range(20))
    assert report.notes == ()
    assert (report.manifest.resumed, report.manifest.resumed_from) == (0, [])


def _settle(operator: Any, dataset: Any, path: Path, spans: list[tuple[Span, bytes]]) -> None:
    """Leave the checkpoint of a killed run that has settled these spans, and no others."""
    fingerprint = RunFingerprint.of(operator.__dataops__, dataset.identity)
    checkpoint = Checkpoint(fresh(node(path).checkpoints), fingerprint, "killed", 1.0)
    with closing(checkpoint.new_segment()) as segment:
        for span, output in spans:
            checkpoint.journal(SpansEntry.of(segment.number, segment.append(output), [span]))
    checkpoint.close()


@pytest.mark.parametrize("policy", [ResumePolicy.AUTO, ResumePolicy.FAILED_RECORDS])
@pytest.mark.parametrize("ours", [False, True], ids=["a user's file", "a published file"])
def test_a_line_read_while_its_file_was_cut_short_is_done_again(
    tmp_path: Path, dataset, registry, calls, ours: bool, policy: ResumePolicy
) -> None:
    """The file is read as during a copy over the input; it is complete when the run resumes."""
    digest = content_digest(dataset.path) if ours else None
    dataset = replace(dataset, fingerprint=digest)
    operator = _operator(registry)
    whole = dataset.path.read_bytes()
    error = b'{"offset":8,"position":0}\n'
    spans = []
    for start, end, output in ((0, 8, lines([{"n": 0}])), (8, 12, error)):  # then it was {"n"
        failed = output is error
        sizes = (0, len(output)) if failed else (len(output), 0)
        check = 0 if digest else checksum(whole[start:end])
        counts = (1, int(not failed), 0, int(failed))
        spans.append((Span(start, end - start, *counts, *sizes, check, checksum(output)), output))
    _settle(operator, dataset, tmp_path, spans)
    os.utime(dataset.path, ns=(1, 1))
    report = _go_on(operator, dataset, tmp_path, policy)
    assert report.notes == ("resuming: 1 record settled by run killed",)
    assert calls == list(range(1, 20))
    assert node(tmp_path).result.read_bytes() == _expected()
    assert report.manifest.failed == 0


@pytest.mark.parametrize("policy", [ResumePolicy.AUTO, ResumePolicy.FAILED_RECORDS])
def test_a_settled_record_whose_line_was_joined_to_the_one_before_is_done_again(
    tmp_path: Path, dataset, registry, calls, policy: ResumePolicy
) -> None:
    """The newline between an open and a settled record became a space: the size is the same."""
    content = dataset.path.read_bytes()
    records = content.splitlines(keepends=True)
    spans = []
    for number in (1, 2, *range(6, 20)):
        output, line = lines([{"n": number * 2}]), records[number]
        span = Span(sum(map(len, records[:number])), len(line), 1, 1, output_bytes=len(output))
        checks = {"input_check": checksum(line), "output_check": checksum(output)}
        spans.append((span._replace(**checks), output))
    _settle(_operator(registry), dataset, tmp_path, spans)
    for joined in (b'{"n":0}\n', b'{"n":5}\n'):
        content = content.replace(joined, joined[:-1] + b" ")
    dataset.path.write_bytes(content)
    resumed = _go_on(_operator(registry), dataset, tmp_path, policy)
    assert calls == [3, 4]
    assert resumed.manifest.resumed == 14
    fresh_run = run(_operator(registry), dataset, node(tmp_path, "fresh"))
    assert resumed.dataset.path.read_bytes() == fresh_run.dataset.path.read_bytes()
    counts = [(each.manifest.rows_in, each.manifest.failed) for each in (resumed, fresh_run)]
    assert counts == [(18, 2), (18, 2)]
