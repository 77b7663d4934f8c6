"""Exports that are killed at random instants: at the target is the old export or the new one."""

import random
import time
from pathlib import Path

import datasets
import orjson
import pyarrow.parquet as pq
import pytest
import webdataset

from tests.faults.cases import cases
from tests.faults.crashing import Script, alive_in_session, wait_until
from tests.subprocesses import killed_at_exit

_ROWS = 1500
_KILLS = cases(3, campaign=60)  # of one format
_FORMATS = ("pyarrow.parquet", "datasets", "webdataset")
_CODE = """
FORMATS = {{
    "parquet": lambda: data.export.Parquet("out/x.parquet", row_group_rows=100),
    "jsonl": lambda: data.export.Jsonl("out/x.jsonl.gz"),
    "folder": lambda: data.export.Jsonl("out/x", records_per_file=100),
    "huggingface": lambda: data.export.HuggingFace("out/x", shard_bytes=5000),
    "webdataset": lambda: data.export.WebDataset("out/x/a-%03d.tar", shard_bytes=200_000),
}}

if __name__ == "__main__":
    operator = FORMATS[sys.argv[1]]()
    number = int(sys.argv[2])
    while True:
        path = HOME / f"input-{{sys.argv[3]}}-{{number % 2}}.jsonl"
        path.write_text((json.dumps({{"n": number}}) + "\\\\n") * {rows})
        folder = NodeFolder(HOME / sys.argv[3], "node")
        context = RunContext(run=f"r-{{number}}", resume=ResumePolicy.AUTO, lock_seconds=60,
                             root=HOME)
        OperatorExecutor(context).run(operator, [JsonlDataset.of_file(path)], folder)
        log("published", number)
        number += 1
"""


def numbers_in(kind: str, folder: Path) -> set[int]:
    """Return the numbers in a whole export; it must have all its rows."""
    if kind == "parquet":
        found = pq.read_table(folder / "x.parquet")["n"].to_pylist()
    elif kind == "jsonl":
        import gzip

        lines = gzip.decompress((folder / "x.jsonl.gz").read_bytes()).splitlines()
        found = [orjson.loads(line)["n"] for line in lines]
    elif kind == "folder":
        paths = sorted((folder / "x").glob("part-*"))
        found = [orjson.loads(line)["n"] for path in paths for line in path.open("rb")]
    elif kind == "huggingface":
        found = datasets.load_from_disk(str(folder / "x"))["train"]["n"]
    else:
        shards = sorted(map(str, (folder / "x").glob("*.tar")))
        read = webdataset.WebDataset(shards, shardshuffle=False).decode()
        found = [sample["json"]["n"] for sample in read]
    assert len(found) == _ROWS
    return set(found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ["parquet", "jsonl", "folder", "huggingface", "webdataset"])
def test_an_export_is_whole_after_a_kill_at_any_instant(tmp_path: Path, kind: str) -> None:
    script = Script(tmp_path, _CODE.format(rows=_ROWS).replace("\\\\n", "\\n"), *_FORMATS)
    chance = random.Random(f"{kind} {_KILLS}")
    latest = -1
    for _ in range(_KILLS):
        before = len(script.log("published"))
        with killed_at_exit(script.start(kind, str(latest + 1), "node")) as process:
            wait_until(lambda n=before: len(script.log("published")) > n, 60, "an export")
            time.sleep(chance.random() * 0.2)
            process.kill()
            process.wait()
            wait_until(lambda p=process.pid: not alive_in_session(p), 10, "its end")
        (found,) = numbers_in(kind, tmp_path / "out")
        reported = max(int(number) for _, number in script.log("published"))
        assert found in {reported, reported + 1}  # killed between replacing and reporting
        latest = found
    names = [path.name for path in (tmp_path / "out").iterdir()]
    assert len([name for name in names if name.startswith(".dataops-export-")]) <= 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ["jsonl", "folder", "huggingface"])
def test_two_runs_that_export_to_one_path_leave_a_whole_export(tmp_path: Path, kind: str) -> None:
    script = Script(tmp_path, _CODE.format(rows=_ROWS).replace("\\\\n", "\\n"), *_FORMATS)
    with (
        killed_at_exit(script.start(kind, "100000", "node1")) as first,
        killed_at_exit(script.start(kind, "200000", "node2")) as second,
    ):
        wait_until(lambda: len(script.log("published")) > 20, 60, "exports")
        assert [first.poll(), second.poll()] == [None, None], script.output()
    assert len(numbers_in(kind, tmp_path / "out")) == 1
