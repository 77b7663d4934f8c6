"""The table of kill cases: runs of every kind, what they must publish and what else must hold."""

import json
import re
import struct
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import orjson

from dagster_dataops import config, data, load_artefact, load_result
from dagster_dataops.checkpoints.folder import manifest
from dagster_dataops.checkpoints.journal.stored_outcomes import outcomes_in
from dagster_dataops.foundation.places.open_stores import writing
from tests.execution.helpers import MODES, lines
from tests.execution.splitting import OUTPUTS, check_manifests, splits, written
from tests.faults.cases import cases
from tests.faults.kill import Kill, Publishing
from tests.journals import line_digest
from tests.nodes import Manifest, NodeFolder, existing
from tests.operators.chain_parts import funnel_of

Rows = list[dict[str, Any]]
FILES: Final = 12  # of an artefact
EXPORTED: Final = 1500  # rows of an export
TRAINERS: Final = ("megatron", "mds", "litdata")  # formats of exports


def numbered(count: int) -> Rows:
    return [{"n": n} for n in range(count)]


def manifest_of(node: NodeFolder) -> Manifest:
    found = Manifest.load(node.manifest)
    assert found is not None
    return found


# -------------------------------------------------------------- runs over records


class Counts(Kill):
    """Counts and drops: those of the calls whose outcomes stayed."""

    code = """
from dagster_dataops import OperatorContext

def counted(record, context):
    tokens = record["n"] % 17 + 1
    log("called", f"{record['n']} {tokens}")
    context.count(tokens=tokens, cost=tokens / 8)
    if record["n"] % 10 == 3:
        return context.drop("three")
    if record["n"] % 10 == 4:
        raise ValueError("four")
    return record

@data_register("data.counted")
def ask(record, context: OperatorContext):
    time.sleep(0.003)
    return counted(record, context)

@data_register("data.counted")
async def ask_async(record, context: OperatorContext):
    await asyncio.sleep(0.003)
    return counted(record, context)

@data_register("data.counted", rewrite_func="forward_batch", _batch_size=8)
def ask_batch(records, context: OperatorContext):
    time.sleep(0.01)
    found = []
    for record in records:
        try:
            found.append(counted(record, context))
        except ValueError as error:
            found.append(error)
    return found

if __name__ == "__main__":
    mode = sys.argv[1]
    operator = {"async": ask_async, "batch": ask_batch}.get(mode, ask)
    mode = "process" if mode == "batch" else mode
    run(operator(_concurrency_mode=mode, _max_workers=4, _stop_after_failures=0))
"""
    options = (*MODES, "batch")
    kills, wait, failed = cases(2, campaign=100), (0, 0.25), 40

    def records(self) -> Rows:
        return numbered(400)

    def expected(self) -> bytes:
        return lines(row for row in self.rows if row["n"] % 10 not in {3, 4})

    def check(self) -> None:
        super().check()
        tokens = {int(entry[1]): int(entry[2]) for entry in self.script.log("called")}
        found, total = manifest_of(self.node), sum(tokens.values())
        assert found.counts == {"tokens": total, "cost": total / 8}
        assert found.drops == {"three": 40}
        assert found.failed == self.failed


class MadeFiles(Kill):
    """Files that the operator makes: what is journaled or published names whole files only."""

    code = """
from dagster_dataops import File

def drawn(record):
    log("called", record["n"])
    record["own"] = File(str(record["n"]).encode() * 5000, "text/plain")
    record["shared"] = [File(bytes([record["n"] % 3]) * 70_000, "image/x")]
    return record

@data_register("data.drawn")
def draw(record: dict):
    time.sleep(0.002)
    return drawn(record)

@data_register("data.drawn")
async def draw_async(record: dict):
    await asyncio.sleep(0.002)
    return drawn(record)

if __name__ == "__main__":
    mode = sys.argv[1]
    run({"async": draw_async}.get(mode, draw)(_concurrency_mode=mode, _max_workers=4))
"""
    kills, wait = cases(2, campaign=100), (0, 0.25)

    def records(self) -> Rows:
        return numbered(300)

    def expected(self) -> bytes:
        wanted = []
        for row in self.rows:
            own = _reference(str(row["n"]).encode() * 5000, "text/plain")
            shared = _reference(bytes([row["n"] % 3]) * 70_000, "image/x")
            wanted.append({**row, "own": own, "shared": [shared]})
        return lines(wanted)

    def check_attempt(self) -> None:
        folder = self.node.path
        for path in (*folder.glob("*_results.jsonl"), *folder.glob("checkpoints/*/segment-*")):
            for shelf, name in _MADE.findall(path.read_bytes()):
                made = (folder / "files" / shelf.decode() / name.decode()).read_bytes()
                assert sha256(made).hexdigest().encode() == shelf + name


_MADE: Final = re.compile(rb'"files/([0-9a-f]{2})/([0-9a-f]{62})"')


def _reference(data: bytes, media_type: str) -> dict[str, Any]:
    digest = sha256(data).hexdigest()
    file = f"files/{digest[:2]}/{digest[2:]}"
    facts = {"size": len(data), "digest": f"sha256:{digest}", "media_type": media_type}
    return {"file": file, **facts}


class Chains(Kill):
    """A chain of three: result, funnel and failed parts are those of an undisturbed run."""

    code = """
from dagster_dataops import Drop, OperatorContext, chain

data_register.new_group("kills")

def acted(record, part):
    match record["do"][part]:
        case "split":
            return [record, record, dict(record)]
        case "drop":
            return Drop("unwanted")
        case "fail":
            raise ValueError(part)
    return record

@data_register("data.kills")
def first(record, context: OperatorContext):
    log("called", record["n"])
    context.count(asked=1)
    return acted(record, 0)

@data_register("data.kills")
def second(record):
    time.sleep(0.004)
    return acted(record, 1)

@data_register("data.kills", rewrite_func="forward_batch")
def second_batch(records):
    time.sleep(0.004 * len(records))
    return [acted(record, 1) for record in records]

@data_register("data.kills")
def third(record):
    return acted(record, 2)

@data_register("data.kills")
async def third_async(record):
    await asyncio.sleep(0.001)
    return acted(record, 2)

if __name__ == "__main__":
    option, attempt, resume = sys.argv[1:]
    mode, _, batch = option.partition("-")
    last = third_async() if mode == "async" else third()
    middle, more = (second_batch(), {"_batch_size": 8}) if batch else (second(), {})
    settings = {"_concurrency_mode": mode, "_max_workers": 3, "_timeout": 60, **more}
    run(chain(first(), middle, last, **settings), attempt, ResumePolicy[resume])
"""
    options = (*MODES, *(f"{mode}-batch" for mode in MODES))
    kills, wait = cases(2, campaign=100), (0, 1.0)

    def records(self) -> Rows:
        kinds = ["keep"] * 6 + ["split", "drop", "fail"]
        return [{"n": n, "do": self.chance.choices(kinds, k=3)} for n in range(400)]

    def arguments(self, *, last: bool) -> list[str]:
        retrying = self.attempts % 2 and not last
        attempt = "last" if last else f"attempt-{self.attempts}"
        return [self.option, attempt, "FAILED_RECORDS" if retrying else "AUTO"]

    def expected(self) -> bytes:
        times = {"keep": 1, "split": 3, "drop": 0, "fail": 0}
        wanted = []
        for row in self.rows:
            first, second, third = (times[action] for action in row["do"])
            wanted += [row] * (first * second * third)
        return lines(wanted)

    def check(self) -> None:
        names = [
            "first",
            "second_batch" if "-batch" in self.option else "second",
            "third_async" if self.option.startswith("async") else "third",
        ]
        failing = {row["n"]: names[part] for row in self.rows if (part := _failing(row)) >= 0}
        self.failed = len(failing)
        super().check()
        found = manifest_of(self.node)
        funnel = [{key: row[key] for key in row if key != "seconds"} for row in found.funnel]
        assert funnel == funnel_of(self.rows, 3, names)
        errors = map(json.loads, self.node.errors.read_text().splitlines())
        assert {row["input"]["n"]: row["part"] for row in errors} == failing
        assert found.counts["asked"] >= len(self.rows)


def _failing(row: dict[str, Any]) -> int:
    """Return the part in which a record fails; -1 if in none."""
    ends = [part for part, action in enumerate(row["do"]) if action in {"drop", "fail"}]
    return ends[0] if ends and row["do"][ends[0]] == "fail" else -1


class Packs(Kill):
    """Packs of whole texts: windows that were packed are not packed again, and none differs."""

    code = """
from dagster_dataops.library.tokens.packing import Pack

class Slow(Pack):
    def forward_window(self, records):
        for record in records:
            log("called", record["n"])
        time.sleep(0.02)
        return super().forward_window(records)

if __name__ == "__main__":
    settings = {"_concurrency_mode": sys.argv[1], "_max_workers": 3, "_batch_size": 9}
    run(Slow(20, strategy="best_fit", columns=["ids"], on_overflow="cut", **settings))
"""
    options = ("process", "thread", "single")
    kills, wait, failed = cases(2, campaign=100), (0, 0.3), 0

    def records(self) -> Rows:
        sizes = [self.chance.randrange(25) for _ in range(300)]
        return [{"n": n, "ids": [n] * size} for n, size in enumerate(sizes)]

    def expected(self) -> bytes:
        options = {"strategy": "best_fit", "columns": ["ids"], "on_overflow": "cut"}
        operator = data.tokens.Pack(20, **options)
        windows = [self.rows[at : at + 9] for at in range(0, len(self.rows), 9)]
        return lines(pack for window in windows for pack in operator.forward_window(window))

    def check(self) -> None:
        super().check()
        packed = sum(min(len(row["ids"]), 20) for row in self.rows)
        assert manifest_of(self.node).counts["packed_tokens"] == packed


class Outputs(Kill):
    """Named outputs: no line is left out, and none is there twice."""

    code = """
from dagster_dataops import To

def _sent(record):
    number = record["n"]
    if number % 10 == 3:
        raise ValueError("three")
    if number % 7 == 0:
        return []
    if number % 5 == 0:
        return [To("test"), To("train", {"n": number, "again": True})]
    return To("train" if number % 2 else "test")

@data_register("data.killed", outputs=("train", "test"))
def send(record):
    log("called", record["n"])
    time.sleep(0.01)
    return _sent(record)

@data_register("data.killed", outputs=("train", "test"))
async def send_async(record):
    log("called", record["n"])
    await asyncio.sleep(0.01)
    return _sent(record)

operator = send_async if sys.argv[1] == "async" else send
if __name__ == "__main__":
    run(operator(_concurrency_mode=sys.argv[1], _max_workers=4))
"""
    kills, wait, failed = 4, (0, 0.4), 30

    def node_folder(self) -> NodeFolder:
        return splits(self.folder)

    def records(self) -> Rows:
        return numbered(300)

    def expected(self) -> dict[str, bytes]:
        found: dict[str, list[object]] = {name: [] for name in OUTPUTS}
        for number in range(len(self.rows)):
            if number % 10 == 3 or number % 7 == 0:
                continue
            if number % 5 == 0:
                found["test"].append({"n": number})
                found["train"].append({"n": number, "again": True})
            else:
                found["train" if number % 2 else "test"].append({"n": number})
        return {name: lines(rows) for name, rows in found.items()}

    def published(self) -> dict[str, bytes]:
        return written(self.node)

    def check_attempt(self) -> None:
        check_manifests(self.node)


class OutputsUnderDagster(Outputs):
    """Named outputs in a pipeline of Dagster, whose later nodes read them."""

    code = (
        Outputs.code.partition("if __name__")[0]
        + """
import dagster as dg
from dagster_dataops import DataOpsResource, build_definitions, combine, pipeline

@data_register("data.killed", _concurrency_mode="thread", _max_workers=4)
def mark(record):
    log("marked", record["n"])
    time.sleep(0.005)
    record["marked"] = True

if __name__ == "__main__":
    with pipeline("docs") as ppl:
        ppl.split = operator(_concurrency_mode=sys.argv[1], _max_workers=4)
        ppl.add("marked", mark(), inputs=ppl.split.train)
        ppl.both = combine.concat([ppl.marked, ppl.split.test])
    resource = DataOpsResource(root=str(HOME / "root"), lock_seconds=10)
    definitions = build_definitions(ppl, source=HOME / "input.jsonl", resource=resource)
    (HOME / "instance").mkdir(exist_ok=True)
    with dg.DagsterInstance.local_temp(str(HOME / "instance")) as instance:
        log("begun")
        job = definitions.resolve_job_def("docs_pipeline")
        assert job.execute_in_process(instance=instance).success
        for output in ("train", "test"):
            key = dg.AssetKey(["docs", "split", output])
            assert instance.get_latest_materialization_event(key) is not None
"""
    )
    options = ("process", "async")
    modules = ("dagster", "dagster_dataops.assets.definitions")
    kills, wait, log = cases(2, campaign=20), (0.3, 2.5), "begun"

    def node_folder(self) -> NodeFolder:
        folder = NodeFolder(self.folder / "root" / "docs" / "split", "split")
        return folder.with_outputs(OUTPUTS)

    def expected(self) -> dict[str, bytes]:
        found = super().expected()
        train = found["train"].replace(b"}", b',"marked":true}')
        return {**found, "both": train + found["test"]}

    def published(self) -> dict[str, bytes]:
        both = self.folder / "root" / "docs" / "both" / "both_results.jsonl"
        return {**super().published(), "both": both.read_bytes()}

    def is_published(self) -> bool:
        return False  # the nodes after this one may be missing


class ChangedInputs(Kill):
    """An input that changes between attempts: settled records are not called again."""

    code = """
@data_register("data.reuse_kills", _max_workers=3, _reuse_outcomes=True)
def work(record):
    time.sleep(0.005)
    log("called", record["n"])
    return {"n": record["n"], "done": True} if record["n"] % 5 else []

@data_register("data.reuse_kills", _max_workers=3, _reuse_outcomes=True)
async def work_async(record):
    await asyncio.sleep(0.005)
    log("called", record["n"])
    return {"n": record["n"], "done": True} if record["n"] % 5 else []

if __name__ == "__main__":
    mode, attempt = sys.argv[1:]
    operator = (work_async if mode == "async" else work)(_concurrency_mode=mode)
    run(operator, run=attempt)
"""
    kills, wait = 6, (0, 0.15)
    saved = following = 0
    settled: frozenset[int] = frozenset()

    def records(self) -> Rows:
        return self._new(120)

    def arguments(self, *, last: bool) -> list[str]:
        return [self.option, "last" if last else f"attempt-{self.attempts}"]

    def _new(self, count: int) -> Rows:
        first, self.following = self.following, self.following + count
        return [{"n": n, "text": "x" * (n % 7)} for n in range(first, self.following)]

    def prepare(self) -> None:
        """Leave some records out, add some, put all in another order, and note the settled."""
        if self.attempts > 1:
            kept = [row for row in self.rows if self.chance.random() < 0.95]
            self.rows = [*kept, *self._new(self.chance.choice((0, 8, 30, 60)))]
            if self.chance.random() < 0.5:
                self.chance.shuffle(self.rows)
        (self.folder / "input.jsonl").write_bytes(lines(self.rows))
        (self.folder / "called").unlink(missing_ok=True)
        self.settled = self._on_disk()
        self.saved += len(self.settled)

    def _on_disk(self) -> frozenset[int]:
        """Return the numbers of the records whose outcomes are on disk."""
        journals = [content.folder / "journal" for content in existing(self.node.checkpoints)]
        journals += [self.node.kept] if manifest.published(self.node) else []
        digests = {one.digest for path in journals if path.exists() for one in outcomes_in(path)}
        numbers = {line_digest(orjson.dumps(row)): row["n"] for row in self.rows}
        return frozenset(number for digest, number in numbers.items() if digest in digests)

    def check_attempt(self) -> None:
        asked = {int(number) for number in self.called()}
        assert not asked & self.settled, f"asked again for {sorted(asked & self.settled)}"

    def expected(self) -> bytes:
        return lines({"n": row["n"], "done": True} for row in self.rows if row["n"] % 5)

    def check(self) -> None:
        assert self.published() == self.expected()

    def is_published(self) -> bool:
        return False  # there is the result of an earlier input

    def begin_anew(self) -> None:
        """Keep the result: the next attempt takes its outcomes over."""

    def check_end(self) -> None:
        super().check_end()
        assert self.saved or self.attempts == 1


class Selections(Kill):
    """A selection, killed in either half: nothing is lost or doubled."""

    code = """
group = data_register.new_group("chosen")

class FirstOfFifty(group):
    def __init__(self, wait=0.0, **kwargs):
        super().__init__(**kwargs)
        self.wait = wait

    def sketch(self, record):
        log("called", record["n"])
        time.sleep(self.wait)
        if record["n"] % 10 == 3:
            raise ValueError("three")
        return record["n"] % 50

    def keep(self, sketches, scratch):
        seen = set()
        for position, sketch in enumerate(sketches):
            if position == 100:
                (scratch / "spilled").write_text("x")
                log("chose")
                if sys.argv[2] == "killed":
                    time.sleep(60)
            yield sketch not in seen
            seen.add(sketch)

if __name__ == "__main__":
    report = run(FirstOfFifty(wait=0.02, _concurrency_mode=sys.argv[1], _max_workers=2))
    print(*report.notes)
"""
    options = ("process", "thread", "single")
    moments = (("called", 150), ("chose", 1))
    kills, wait, failed = len(moments), (0, 0), 20

    def records(self) -> Rows:
        return numbered(200)

    def arguments(self, *, last: bool) -> list[str]:
        return [self.option, "undisturbed" if last else "killed"]

    def expected(self) -> bytes:
        return lines({"n": n} for n in range(50) if n % 10 != 3)

    def check_end(self) -> None:
        super().check_end()
        assert "resuming: 200 records settled" in self.script.output()
        # After the first kill half a second of work is done again, after the next one nothing.
        assert self.called().total() - 200 < 100
        assert max(self.called().values()) <= 2


# -------------------------------------------------------------- results on an object store


class Stores(Kill):
    """A result on an object store, from two machines in turn, has the bytes of a local run."""

    code = """
from dagster_dataops import config
from dagster_dataops.checkpoints.places import sent_segments, uploaded_draft

@data_register("data.store_victim", _max_workers=2)
def work(record):
    time.sleep(PAUSE)
    if record["n"] % 50 == 3:
        raise ValueError("three")
    return {**record, "square": record["n"] ** 2}

PAUSE = 0.0 if sys.argv[1] == "local" else 0.0015  # seconds a record

if __name__ == "__main__":
    log("begun")
    root, scratch, mode = sys.argv[1:]
    config.data_process_scratch = HOME / scratch
    config.data_process_path = HOME / root if root == "local" else root
    if scratch in {"scratch1", "two"}:  # this machine keeps nothing that the store has
        sent_segments.KEPT_BYTES = uploaded_draft.LARGE_BYTES = 0
    context = RunContext(run=scratch, resume=ResumePolicy.AUTO, flush_seconds=0.5)
    folder = NodeFolder.of(config.results_root() / "work")
    dataset = JsonlDataset.of_file(HOME / "input.jsonl")
    found = OperatorExecutor(context).run(work(_concurrency_mode=mode), [dataset], folder).manifest
    log("resumed", f"{found.resumed} {len(found.attempts)}")
"""
    options = ("0", "1", "2", "3")  # seeds
    modules = ("dagster_dataops.foundation.places.objects.object_store",)
    kills, wait, log = cases(2, campaign=25), (0, 1.8), "begun"
    group = False
    rounds = 0

    def records(self) -> Rows:
        return numbered(1500)

    @property
    def root(self) -> str:
        return f"s3://results/{self.folder.name}/{self.rounds}"

    def arguments(self, *, last: bool) -> list[str]:
        machine = f"scratch{(self.attempts + last) % 2}"
        return [self.root, machine, self.chance.choice(["single", "thread", "process"])]

    def expected(self) -> list[bytes]:
        self.script.finish("local", "scratch-local", "single")
        return _result_and_errors(self.folder / "local" / "work")

    def published(self) -> list[bytes]:
        config.data_process_scratch = self.folder / "reader"
        return _result_and_errors(load_result(f"{self.root}/work").path.parent)

    def is_published(self) -> bool:
        return False  # there is no local folder to look at

    def check(self) -> None:
        assert self.published() == self.expected()

    def begin_anew(self) -> None:
        super().begin_anew()
        self.rounds += 1


def _result_and_errors(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in ("work_results.jsonl", "work_error.jsonl")]


class OtherMachines(Stores):
    """A run that is killed when outcomes are stored goes on, on another machine."""

    options = ("single", "thread", "process")
    moments = (("a journal with outputs on the store", 1),)

    def arguments(self, *, last: bool) -> list[str]:
        return [self.root, "two" if last else "one", self.option]

    def is_due(self, moment: tuple[str, int]) -> bool:
        config.data_process_scratch, config.data_process_path = self.folder / "watch", self.root
        root = config.results_root()
        names = writing(root.bucket).names(f"{root.bucket.key_of(root.path)}/work/.journal")
        return bool(_entries_with_outputs(names))

    def check(self) -> None:
        _, resumed, attempts = self.script.log("resumed")[-1]
        assert int(resumed) > 0
        assert int(attempts) == 2
        super().check()


def _entries_with_outputs(names: Iterable[str]) -> set[str]:
    """Return the entries of a journal whose outputs, which are stored first, are there, too."""
    parts = [name.rsplit("/", 2)[1:] for name in names]
    outputs = {name.partition("-")[0] for folder, name in parts if folder == "data"}
    return outputs & {name for folder, name in parts if folder != "data"}


# -------------------------------------------------------------- one publication after another


class Artefacts(Publishing):
    """An artefact is whole, and what killed builds left is removed."""

    code = """
class Files(data_register.new_group("killed_artefacts")):
    # Writes its number to several files, and reads them again before the end.

    def build(self, records, folder):
        (number,) = (record["n"] for record in records)
        for place in range(12):
            path = folder / f"{place % 3}" / f"{place}"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{number} " * 400)

if __name__ == "__main__":
    _, _, first, *step = sys.argv
    number = int(first)
    while True:
        path = HOME / f"input-{os.getpid()}.jsonl"
        path.write_text(json.dumps({"n": number}) + "\\n")
        folder = NodeFolder(HOME / "node", "node")
        context = RunContext(run=f"run-{number}", resume=ResumePolicy.AUTO, lock_seconds=60)
        OperatorExecutor(context).run(Files(), [JsonlDataset.of_file(path)], folder)
        log("published", number)
        number += int(step[0]) if step else 1
"""
    options = ("artefact",)
    kills, wait, group = cases(6, campaign=100), (0, 0.1), False

    def published(self) -> int:
        return content_of(load_artefact(self.node.path).path)

    def check_end(self) -> None:
        folders = [path for path in (self.node.path / "node_artefact").iterdir() if path.is_dir()]
        assert len(folders) <= 6  # what the killed attempt left is removed by the next one


def content_of(version: Path) -> int:
    """Return the number that all files of a version of an artefact hold."""
    files = [path for path in version.rglob("*") if path.is_file()]
    (text,) = {path.read_text() for path in files}
    assert len(files) == FILES
    assert len(text.split()) == 400
    return int(text.split()[0])


class Exports(Publishing):
    """At the target of an export is the old one or the new one, whole."""

    code = """
FORMATS = {
    "parquet": lambda: data.export.Parquet("out/x.parquet", row_group_rows=100),
    "jsonl": lambda: data.export.Jsonl("out/x.jsonl.gz"),
    "folder": lambda: data.export.Jsonl("out/x", records_per_file=100),
    "huggingface": lambda: data.export.HuggingFace("out/x", shard_bytes=5000),
    "webdataset": lambda: data.export.WebDataset("out/x/a-%03d.tar", shard_bytes=200_000),
    "megatron": lambda: data.export.Megatron("out/x/a", "ids", shard_bytes=2000),
    "mds": lambda: data.export.MDS("out/x", {"n": "int"}, shard_bytes=5000),
    "litdata": lambda: data.export.LitData("out/x", "ids", 8, shard_bytes=2000),
}

if __name__ == "__main__":
    _, kind, first, *names = sys.argv
    operator, number, (name, *_) = FORMATS[kind](), int(first), [*names, "node"]
    while True:
        path = HOME / f"input-{name}-{number % 2}.jsonl"
        path.write_text((json.dumps({"n": number, "ids": [number]}) + "\\n") * 1500)
        folder = NodeFolder(HOME / name, "node")
        context = RunContext(run=f"r-{number}", resume=ResumePolicy.AUTO, lock_seconds=60,
                             root=HOME)
        OperatorExecutor(context).run(operator, [JsonlDataset.of_file(path)], folder)
        log("published", number)
        number += 1
"""
    options = ("parquet", "jsonl", "folder", "huggingface", "webdataset", *TRAINERS)
    modules = ("pyarrow.parquet", "datasets", "webdataset")
    kills, wait, group = cases(3, campaign=60), (0, 0.2), False

    def published(self) -> int:
        (found,) = numbers_in(self.option, self.folder / "out")
        return found

    def check_end(self) -> None:
        names = [path.name for path in (self.folder / "out").iterdir()]
        assert len([name for name in names if name.startswith(".dataops-export-")]) <= 1


def numbers_in(kind: str, folder: Path) -> set[int]:
    """Return the numbers in a whole export; it must have all its rows."""
    if kind == "parquet":
        import pyarrow.parquet as pq

        found = pq.read_table(folder / "x.parquet")["n"].to_pylist()
    elif kind == "jsonl":
        import gzip

        rows = gzip.decompress((folder / "x.jsonl.gz").read_bytes()).splitlines()
        found = [orjson.loads(row)["n"] for row in rows]
    elif kind == "folder":
        paths = sorted((folder / "x").glob("part-*"))
        found = [orjson.loads(row)["n"] for path in paths for row in path.open("rb")]
    elif kind == "huggingface":
        import datasets

        found = datasets.load_from_disk(str(folder / "x"))["train"]["n"]
    elif kind in TRAINERS:
        found = list(trained_on(kind, folder / "x"))
    else:
        import webdataset

        shards = sorted(map(str, (folder / "x").glob("*.tar")))
        read = webdataset.WebDataset(shards, shardshuffle=False).decode()
        found = [sample["json"]["n"] for sample in read]
    assert len(found) == EXPORTED
    return set(found)


def trained_on(kind: str, folder: Path) -> Iterator[int]:
    """Yield the numbers in an export for a trainer, by what its index says."""
    if kind == "megatron":
        for index in sorted(folder.glob("*.idx")):
            (count,) = struct.unpack_from("<Q", index.read_bytes(), 18)
            yield from struct.unpack(f"<{count}i", index.with_suffix(".bin").read_bytes())
        return
    index = orjson.loads((folder / "index.json").read_bytes())
    for part in index["shards" if kind == "mds" else "chunks"]:
        name = part["raw_data"]["basename"] if kind == "mds" else part["filename"]
        content, count = (folder / name).read_bytes(), part.get("samples") or part["chunk_size"]
        places = struct.unpack_from(f"<{count + 1}I", content, 4)
        width, code = (8, "q") if kind == "mds" else (4, "i")
        assert places[-1] == len(content) == places[0] + width * count
        yield from struct.unpack_from(f"<{count}{code}", content, places[0])


TABLE: Final[tuple[type[Kill], ...]] = (
    Counts,
    MadeFiles,
    Chains,
    Packs,
    Outputs,
    OutputsUnderDagster,
    ChangedInputs,
    Selections,
    Stores,
    OtherMachines,
    Artefacts,
    Exports,
)
