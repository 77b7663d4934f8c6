"""Scenarios of disk faults: the files in a folder, and the attempt that is disturbed there.

All of them write below ``home / "disk"``; inputs and recorded calls are beside it.
"""

import asyncio
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final

import orjson
import pytest
from typing_extensions import override

from dagster_dataops import (
    DataPipeline,
    File,
    JsonlDataset,
    Operational,
    To,
    data,
    load_artefact,
    read_jsonl,
    restore,
    versions,
)
from dagster_dataops.data import data_register
from dagster_dataops.execution import ticker
from dagster_dataops.execution.runners import dataset_stages, selection_stages, stream_runner
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import read_blocks
from tests.execution.helpers import SMALL, cut_by, lines
from tests.faults import calls
from tests.journals import SpanTable
from tests.nodes import (
    Manifest,
    NodeFolder,
    OperatorExecutor,
    ResumePolicy,
    RunContext,
    content_digest,
    deleting,
    existing,
    given_stream,
    published,
    published_manifest,
    write_result,
)
from tests.parted_results import put_in_parts

COUNT: Final = 40
_OLD: Final = range(100, 130)
_STOP_AT: Final = 25
_RUNS: Final = frozenset({"disturbed", "next"})


class Switches(Operational):
    """The behaviour of the operators besides their work."""

    failing = True
    stop_at: int | None = None
    seconds = 0.0


_SWITCHES: Final = Switches()


def _become(record: dict[str, Any]) -> Any:
    number = record["n"]
    time.sleep(_SWITCHES.seconds)
    if number == _SWITCHES.stop_at:
        raise KeyboardInterrupt
    calls.note(number)
    match number % 7:
        case 0:
            record["kept"] = True
            return None
        case 1:
            return [{"n": number, "part": part} for part in range(3)]
        case 2:
            return []
        case 4 if _SWITCHES.failing:
            raise ValueError(number)
    return {"n": number, "text": record["text"] * 2}


@data_register("data.scenarios", _max_workers=2)
def work(record):
    return _become(record)


@data_register("data.scenarios", _max_workers=2)
def work_plainly(record):
    time.sleep(_SWITCHES.seconds)
    calls.note(record["n"])
    return {"n": record["n"], "text": record["text"] * 2}


@data_register("data.scenarios", _max_workers=4)
async def work_async(record):
    await asyncio.sleep(0)
    return _become(record)


@data_register("data.scenarios", _max_workers=2)
def draw(record):
    number = record["n"]
    time.sleep(_SWITCHES.seconds)
    calls.note(number)
    if number % 7 == 4:
        raise ValueError(number)
    record["shared"] = File(b"x" * 9000 * (number % 3), "text/plain")
    record["own"] = [File(f"{number}".encode() * 999, "text/plain")]
    return record


@data_register("data.scenarios", rewrite_func="forward_batch_input")
def join(left: list[dict], right: list[dict]):
    found = {row["n"]: row for row in right}
    return [{**row, "right": found.get(row["n"])} for row in left]


@data_register("data.scenarios", outputs=("left", "right"), _max_workers=2)
def send(record):
    made = _become(record)
    records = [record] if made is None else made if isinstance(made, list) else [made]
    outputs = ("left", "right") if record["n"] % 2 else ("right", "left")
    return [To(outputs[place % 2], one) for place, one in enumerate(records)]


_selections: Any = data_register.new_group("scenario_selections")


class Select(_selections):
    """Keeps the first record of each remainder, and all odd records."""

    def sketch(self, record: dict[str, Any]) -> int:
        number = int(record["n"])
        calls.note(number)
        if number % 11 == 4:
            raise ValueError(number)
        return number % 9

    def keep(self, sketches: Iterable[int], scratch: Path) -> Iterator[bool]:
        seen: set[int] = set()
        (scratch / "seen").write_text("scratch")
        for sketch in sketches:
            yield sketch not in seen or sketch % 2 == 1
            seen.add(sketch)


def _map(item: dict[str, Any]) -> dict[str, Any]:
    time.sleep(_SWITCHES.seconds)
    calls.note(item["n"])
    return {"n": item["n"], "text": item["text"][::-1]}


def _map_some(item: dict[str, Any]) -> dict[str, Any]:
    if item["n"] % 13 == 5:
        raise ValueError(item["n"])
    return _map(item)


_artefacts: Any = data_register.new_group("scenario_artefacts")


class Build(_artefacts):
    """Builds files of the records, one in a folder, beside an empty folder."""

    def build(self, records: Iterator[dict[str, Any]], folder: Path) -> None:
        found = list(records)
        (folder / "inner").mkdir()
        (folder / "empty").mkdir()
        (folder / "inner" / "texts").write_text("".join(record["text"] for record in found) * 9)
        (folder / "numbers").write_text(" ".join(str(record["n"]) for record in found))


_exports: Any = data_register.new_group("scenario_exports")


class Export(_exports):
    """Writes the records to a file, which it reads twice."""

    def __init__(self, path: Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def write(self, records: Iterable[dict[str, Any]], place: Path) -> None:
        texts = "".join(str(record["text"]) for record in records)
        place.write_text(texts * 9 + " ".join(str(record["n"]) for record in records))


def rows(numbers: Iterable[int]) -> list[dict[str, Any]]:
    return [{"n": number, "text": f"é {number}"} for number in numbers]


def _never() -> None:
    """Never stop."""


class Scenario:
    """One attempt over ``COUNT`` records, in an empty folder.

    Attributes:
        options: The options of the operator.
        modes: The modes of the scenario.
        stops: Whether the disturbed attempt is stopped instead of finishing.
        policy: The resume policy of all attempts.
        inputs: Names of its input files.
        flush_seconds: How much finished work may be lost; 0 syncs at every chance.
        form: The form of the result of each attempt.
        old_form: That of the result before, see `_run_over_old`.
        reuse: Whether a finished result of the same operator and input is used.
    """

    options: ClassVar[dict[str, Any]] = {}
    modes: ClassVar[Sequence[str]] = ("single",)
    stops: ClassVar[bool] = False
    policy: ClassVar[ResumePolicy] = ResumePolicy.AUTO
    inputs: ClassVar[Sequence[str]] = ("input.jsonl",)
    flush_seconds: ClassVar[float] = 0.0
    form: ClassVar[str] = "jsonl"
    old_form: ClassVar[str] = "jsonl"
    reuse: ClassVar[bool] = False

    def __init__(self, home: Path, mode: str) -> None:
        self.home, self.mode = home, mode
        self.disk = home / "disk"
        self.folder = NodeFolder(self.disk / "results" / "node", "node")

    # ---------------------------------------------------------------- earlier files

    def prepare(self) -> None:
        """Make inputs, and the files of earlier attempts."""
        self.disk.mkdir(parents=True)
        self._write("input.jsonl", range(COUNT))

    def _write(self, name: str, numbers: Iterable[int]) -> None:
        (self.home / name).write_bytes(lines(rows(numbers)))

    def _run_over_old(self) -> None:
        """Publish a result of another input."""
        self._write("old.jsonl", _OLD)
        self._run("old", ["old.jsonl"], "single")

    def _interrupt(self) -> None:
        """Leave the checkpoint of an attempt that was interrupted."""
        _SWITCHES.stop_at = _STOP_AT
        with pytest.raises(KeyboardInterrupt):
            self._run("interrupted", self.inputs, "single")
        _SWITCHES.stop_at = None

    # ---------------------------------------------------------------- attempts

    def disturbed(self) -> None:
        """Make the attempt that is recorded or disturbed; it syncs and checks at every chance."""
        for module in (ticker, stream_runner):
            module._TICK_SECONDS = 0.0005  # type: ignore[attr-defined]
        ticker._STOP_CHECK_SECONDS = 0.0  # type: ignore[misc]
        _SWITCHES.seconds = 0.001
        self.attempt("disturbed")

    def attempt(self, run: str) -> None:
        """Make an attempt, which finishes unless it is disturbed or stopped."""
        self._run(run, self.inputs, self.mode)

    def _reason_to_stop(self) -> str | None:
        done = len(calls.calls_in(Path(os.environ["CALLS"])))
        return "told to" if done > _STOP_AT else None

    def operator(self, mode: str) -> Any:
        """Return the operator; that of one scenario is the same in every mode."""
        chosen = work_async if self.mode == "async" else work
        return chosen(_concurrency_mode=mode, **self.options)

    def _run(self, run: str, names: Sequence[str], mode: str) -> None:
        cut_by(pytest.MonkeyPatch(), SMALL)
        datasets = [JsonlDataset.of_file(self.home / name) for name in names]
        context = RunContext(
            run=run,
            resume=self.policy if run in _RUNS else ResumePolicy.AUTO,
            earlier_runs=_RUNS if run in _RUNS else frozenset(),
            lock_seconds=20,
            flush_seconds=self.flush_seconds,
            reuse_finished=self.reuse and run in _RUNS,
            result_format=self.form if run in _RUNS else self.old_form,
            should_stop=self._reason_to_stop if self.stops and run == "disturbed" else _never,
        )
        OperatorExecutor(context).run(self.operator(mode), datasets, self.folder)

    # ---------------------------------------------------------------- results

    def state(self) -> dict[str, Any]:
        """Return the files that a reader finds: bytes, counts, and the names in the folder."""
        deleting.finish()
        folder = self.folder.as_published()
        manifest = Manifest.load(folder.manifest)
        counts = ("rows_in", "rows_out", "dropped", "failed", "size_bytes", "fingerprint")
        names = {path.name for path in folder.path.iterdir()} if folder.path.exists() else set()
        return {
            "result": bytes_of(folder.result) if folder.result.is_file() else None,
            "errors": folder.errors.read_bytes() if folder.errors.exists() else b"",
            "manifest": manifest and {name: getattr(manifest, name) for name in counts},
            "published": self.is_published(),
            "names": sorted(names - {".lock"}),
        }

    def is_published(self) -> bool:
        """Return whether a whole result counts as published."""
        return published(self.folder) is not None

    def is_whole(self, result: Any, known: Sequence[Any]) -> bool:
        """Return whether what is found as the result is one of those that are ``known``."""
        return result in known

    def paid(self) -> set[int]:
        """Return the records that need no call, by the files of earlier attempts."""
        found = (self.settled(made.table) for made in existing(self.folder.checkpoints))
        return set().union(*found)

    def settled(self, table: SpanTable) -> set[int]:
        """Return the records of a checkpoint's table."""
        content = (self.home / "input.jsonl").read_bytes()
        spans = (content[s.start : s.start + s.length] for s, _, _ in table.ordered())
        return {orjson.loads(line)["n"] for span in spans for line in span.splitlines()}


class Over(Scenario):
    """In place of an older result with an error file."""

    modes = ("single", "process")

    @override
    def prepare(self) -> None:
        super().prepare()
        self._run_over_old()


class Fresh(Scenario):
    """The folder is empty."""

    modes = ("single", "thread", "async", "process")


class Plain(Scenario):
    """The folder is empty; every record becomes one line, so that the result is the only draft."""

    @override
    def operator(self, mode: str) -> Any:
        return work_plainly(_concurrency_mode=mode, **self.options)


class PlainOver(Plain):
    """The same in place of an older result."""

    @override
    def prepare(self) -> None:
        super().prepare()
        self._run_over_old()


class Kept(Scenario):
    """In place of an older result, which is kept; the one before it is removed."""

    options: ClassVar[dict[str, Any]] = {"_keep_versions": 1}

    @override
    def prepare(self) -> None:
        super().prepare()
        self._write("older.jsonl", range(200, 220))
        self._run("older", ["older.jsonl"], "single")
        self._run_over_old()

    @override
    def state(self) -> dict[str, Any]:
        """Return the files that a reader finds; among their names those of the newest version."""
        found = super().state()
        names = [f"{one.name}: {_digest_of(one)}" for one in versions(self.folder.path)[-2:-1]]
        return found | {"names": [*found["names"], *names]}


class Restored(Kept):
    """An older result is published again."""

    @override
    def attempt(self, run: str) -> None:
        restore(self.folder.path, 1)


def _digest_of(version: Any) -> str:
    """Return the digest of the files of a version, which must be whole."""
    (dataset,) = version.results.values()
    assert content_digest(dataset.path) == dataset.fingerprint
    errors = version.folder.errors.read_bytes() if version.manifest.failed else b""
    assert errors.count(b"\n") == version.manifest.failed
    files = (version.folder.kept, version.folder.input_digests)
    return sha256(errors + b"".join(path.read_bytes() for path in files)).hexdigest()


class Short(Plain):
    """The same in an empty folder, by a run that ends before its checkpoint is synced."""

    modes = ("single", "process")
    flush_seconds = 60.0


class ShortOver(PlainOver):
    """The same in place of an older result."""

    flush_seconds = 60.0


class Again(Scenario):
    """The same result already exists, and is made again."""

    @override
    def prepare(self) -> None:
        super().prepare()
        self._run("old", self.inputs, "single")


class Resume(Scenario):
    """An attempt was interrupted."""

    modes = ("single", "thread", "async", "process")

    @override
    def prepare(self) -> None:
        super().prepare()
        self._interrupt()


class Stopped(Over):
    """The attempt is stopped, in place of an older result."""

    modes = ("single", "thread", "process")
    stops = True


class Retry(Scenario):
    """Failed records of the published result are retried."""

    modes = ("single", "process")
    policy = ResumePolicy.FAILED_RECORDS

    @override
    def prepare(self) -> None:
        super().prepare()
        self._run("old", self.inputs, "single")

    @override
    def attempt(self, run: str) -> None:
        _SWITCHES.failing = False
        super().attempt(run)

    @override
    def paid(self) -> set[int]:
        return {number for number in range(COUNT) if number % 7 != 4}


class RetryUnfinished(Retry):
    """Failed records of an interrupted attempt are retried."""

    modes = ("single",)

    @override
    def prepare(self) -> None:
        Scenario.prepare(self)
        self._interrupt()

    @override
    def paid(self) -> set[int]:
        return {number for number in range(_STOP_AT) if number % 7 != 4}


class Reuse(Scenario):
    """Outcomes of another input are used again."""

    modes = ("single", "thread")
    options: ClassVar[dict[str, Any]] = {"_reuse_outcomes": True}

    @override
    def prepare(self) -> None:
        super().prepare()
        self._write("old.jsonl", [number for number in range(5, 60) if number % 6])
        self._run("old", ["old.jsonl"], "single")

    @override
    def paid(self) -> set[int]:
        return {number for number in range(5, COUNT) if number % 6 and number % 7 != 4}


class Selection(Over):
    """A selection operator, in place of an older result."""

    @override
    def operator(self, mode: str) -> Any:
        return Select(_concurrency_mode=mode, _max_workers=2)


class Files(Over):
    """An operator that makes files, some of them the same, in place of an older result."""

    modes = ("single", "thread", "process")

    @override
    def operator(self, mode: str) -> Any:
        return draw(_concurrency_mode=mode)

    @override
    def state(self) -> dict[str, Any]:
        """Return the files that a reader finds; no result if it names one that is not whole."""
        found = super().state()
        found["names"] = [name for name in found["names"] if name != "files"]
        for line in (found["result"] or b"").splitlines():
            record = orjson.loads(line)
            for reference in (record["shared"], *record["own"]):
                path = self.folder.path / reference["file"]
                digest = sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"
                if reference["digest"] != f"sha256:{digest}":
                    found["result"] = f"names {path}, which has the digest {digest}".encode()
        return found


class Split(Over):
    """An operator with two outputs, in place of older results."""

    modes = ("single", "process")

    @override
    def __init__(self, home: Path, mode: str) -> None:
        super().__init__(home, mode)
        self.folder = self.folder.with_outputs(("left", "right"))

    @override
    def operator(self, mode: str) -> Any:
        return send(_concurrency_mode=mode, **self.options)

    @override
    def state(self) -> dict[str, Any]:
        found = super().state()
        outputs = self.folder.as_published().outputs.values()
        places = [place for place in outputs if place.path.exists()]
        names = [f"{place.name}/{path.name}" for place in places for path in place.path.iterdir()]
        results = [bytes_of(place.result) for place in places if place.result.exists()]
        return {**found, "result": results, "names": sorted([*found["names"], *names])}

    @override
    def is_published(self) -> bool:
        return published_manifest(self.folder) is not None

    @override
    def is_whole(self, result: Any, known: Sequence[Any]) -> bool:
        """Each output is old or new; only together they count as published."""
        parts = zip(result, *known, strict=True)
        return all(found in states for found, *states in parts)


def bytes_of(result: Path) -> bytes:
    """Return the bytes of a result, with its parts joined."""
    with opened(result) as source:
        return b"".join(read_blocks(source, 100))


class Compressed(Over):
    """A compressed result in place of a compressed one."""

    form = old_form = "jsonl.zst"


class CompressedOverPlain(Over):
    """A compressed result in place of a plain one."""

    form = "jsonl.zst"


class PlainOverCompressed(Over):
    """A plain result in place of a compressed one."""

    old_form = "jsonl.zst"


class Rewritten(Scenario):
    """The result of the same run, which is there already, in another form."""

    form = "jsonl.zst"
    reuse = True

    @override
    def prepare(self) -> None:
        super().prepare()
        self._run("old", self.inputs, "single")

    @override
    def paid(self) -> set[int]:
        return set(range(COUNT))


class RetryCompressed(Retry):
    """Failed records of a published result are retried, which is then compressed."""

    form = "jsonl.zst"


class SplitCompressed(Split):
    """Compressed outputs in place of plain ones."""

    modes = ("single",)
    form = "jsonl.zst"


class Parts(Over):
    """In place of a result that version 0.2 wrote in parts."""

    modes = ("single",)

    @override
    def prepare(self) -> None:
        super().prepare()
        put_in_parts(self.folder, 7)

    @override
    def state(self) -> dict[str, Any]:
        """Return what a reader finds, with the parts joined."""
        place = self.folder.result
        return {**super().state(), "result": bytes_of(place) if place.exists() else None}


class RetryParts(Retry, Parts):
    """Failed records of a published result in parts are retried."""

    modes = ("single",)

    @override
    def prepare(self) -> None:
        Retry.prepare(self)
        put_in_parts(self.folder, 7)


class RetrySplit(Retry, Split):
    """Failed records of two published outputs are retried."""

    modes = ("single",)


class Join(Over):
    """A dataset operator over two inputs, in place of an older result."""

    modes = ("single",)
    inputs = ("input.jsonl", "other.jsonl")

    @override
    def prepare(self) -> None:
        self._write_other()
        super().prepare()

    def _write_other(self) -> None:
        self.home.mkdir(exist_ok=True)
        self._write("other.jsonl", range(20, 50))

    @override
    def _run_over_old(self) -> None:
        self._write("old.jsonl", _OLD)
        self._run("old", ["old.jsonl", "other.jsonl"], "single")

    @override
    def operator(self, mode: str) -> Any:
        return join()


class PartedSelection(Over):
    """A selection operator that decides in partitions, in place of an older result."""

    modes = ("single", "process")

    @override
    def _run(self, run: str, names: Sequence[str], mode: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(selection_stages, "LEAST_RECORDS", 0)
            patch.setattr(dataset_stages, "LEAST_BYTES", 0)
            for module in (selection_stages, dataset_stages):
                patch.setattr(module, "RANGE_BYTES", 300)
            super()._run(run, names, mode)

    @override
    def operator(self, mode: str) -> Any:
        return data.dedup.Exact("text", _concurrency_mode=mode, _max_workers=2)

    @override
    def settled(self, table: SpanTable) -> set[int]:
        return set()  # spans of a stage are tasks; no record is a call


class PartedSort(PartedSelection):
    """A dataset operator that works in partitions, in place of an older result."""

    @override
    def operator(self, mode: str) -> Any:
        return data.sample.Sort("text", reverse=True, _concurrency_mode=mode, _max_workers=2)


class Artefact(Over):
    """An operator that builds a folder, in place of an older one."""

    modes = ("single",)

    @override
    def operator(self, mode: str) -> Any:
        return Build()

    @override
    def state(self) -> dict[str, Any]:
        """Return what a reader finds, with the content of all files."""
        version = load_artefact(self.folder).path
        files = [path for path in version.rglob("*") if path.is_file()]
        content = sorted((path.name, path.read_bytes()) for path in files)
        return {**super().state(), "result": content}


class ExportFile(Over):
    """An operator that exports to a file, in place of an older export."""

    modes = ("single",)

    @override
    def operator(self, mode: str) -> Any:
        return Export(self.disk / "exports" / "file")

    @override
    def state(self) -> dict[str, Any]:
        """Return what a reader finds at the target; it passes as published if it is listed."""
        target = self.disk / "exports" / "file"
        state = super().state()
        listed = f'"{content_digest(target)}"'.encode() in (state["result"] or b"")
        published = state["published"] and listed
        return {**state, "result": target.read_bytes(), "published": published}


class Gather(Join):
    """A record operator over two inputs, in place of an older result."""

    operator = Scenario.operator

    @override
    def settled(self, table: SpanTable) -> set[int]:
        return set()  # numbers come twice


class Combine(Join):
    """A stream operator over two inputs, in place of an older result."""

    @override
    def operator(self, mode: str) -> Any:
        from dagster_dataops.combine import RoundRobin

        return RoundRobin(allow_repeats=False)


class Stream(Scenario):
    """A stream."""

    inputs = ()
    function = staticmethod(_map)

    @override
    def operator(self, mode: str) -> Any:
        return given_stream("scenario", self._stream)

    def _stream(self) -> Any:
        items: DataPipeline = read_jsonl(self.home / "input.jsonl").shuffle(10, seed=1)  # type: ignore[assignment]
        return items.map(self.function).filter(_some).and_return(on_error="quarantine")


def _some(item: dict[str, Any]) -> bool:
    return bool(item["n"] % 7 != 3)


class StreamOver(Stream):
    """The same in place of an older result."""

    @override
    def prepare(self) -> None:
        super().prepare()
        self._write("input.jsonl", _OLD)
        self._run("old", (), "single")
        self._write("input.jsonl", range(COUNT))


class StreamCompressed(StreamOver):
    """A compressed result of a stream in place of a plain one."""

    form = "jsonl.zst"


class StreamStopped(StreamOver):
    """The attempt is stopped."""

    stops = True


class StreamQuarantine(StreamStopped):
    """Some of its items fail."""

    function = staticmethod(_map_some)


class Source(Scenario):
    """Records that no operator produced."""

    @override
    def prepare(self) -> None:
        super().prepare()
        write_result(self.folder, rows(_OLD), "old")

    @override
    def attempt(self, run: str) -> None:
        write_result(self.folder, rows(range(COUNT)), run)


SCENARIOS: Final[dict[str, type[Scenario]]] = {
    "fresh": Fresh,
    "over": Over,
    "again": Again,
    "plain": Plain,
    "plain-over": PlainOver,
    "kept": Kept,
    "restored": Restored,
    "short": Short,
    "short-over": ShortOver,
    "resume": Resume,
    "stopped": Stopped,
    "retry": Retry,
    "retry-unfinished": RetryUnfinished,
    "reuse": Reuse,
    "selection": Selection,
    "files": Files,
    "split": Split,
    "retry-split": RetrySplit,
    "compressed": Compressed,
    "compressed-over-plain": CompressedOverPlain,
    "plain-over-compressed": PlainOverCompressed,
    "rewritten": Rewritten,
    "retry-compressed": RetryCompressed,
    "split-compressed": SplitCompressed,
    "stream-compressed": StreamCompressed,
    "parts": Parts,
    "retry-parts": RetryParts,
    "join": Join,
    "parted-selection": PartedSelection,
    "parted-sort": PartedSort,
    "artefact": Artefact,
    "export": ExportFile,
    "gather": Gather,
    "combine": Combine,
    "stream": Stream,
    "stream-over": StreamOver,
    "stream-stopped": StreamStopped,
    "stream-quarantine": StreamQuarantine,
    "source": Source,
}
