"""Artefacts whose builds are killed at random instants, raced and used meanwhile."""

import random
import threading
import time
from contextlib import suppress
from pathlib import Path

from dagster_dataops import load_artefact
from dagster_dataops.datasets.artefact import held
from dagster_dataops.errors import ResultMissingError
from tests.faults.cases import cases
from tests.faults.crashing import Script, alive_in_session, wait_until
from tests.subprocesses import killed_at_exit

_FILES = 12
_KILLS = cases(6, campaign=100)
_CODE = """
class Files(data_register.new_group("killed_artefacts")):
    # Writes its number to several files, and reads them again before the end.

    def build(self, records, folder):
        (number,) = (record["n"] for record in records)
        for place in range({files}):
            path = folder / f"{{place % 3}}" / f"{{place}}"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{{number}} " * 400)
            if slowly:
                time.sleep(0.01)

slowly = "slowly" in sys.argv
if __name__ == "__main__":
    number = int(sys.argv[1])
    step = int(sys.argv[2])
    while True:
        path = HOME / f"input-{{os.getpid()}}.jsonl"
        path.write_text(json.dumps({{"n": number}}) + "\\\\n")
        folder = NodeFolder(HOME / "node", "node")
        context = RunContext(run=f"run-{{number}}", resume=ResumePolicy.AUTO, lock_seconds=60)
        OperatorExecutor(context).run(Files(), [JsonlDataset.of_file(path)], folder)
        log("published", number)
        number += step
"""


def content_of(version: Path) -> int:
    """Return the number that all files of a version hold."""
    files = [path for path in version.rglob("*") if path.is_file()]
    (text,) = {path.read_text() for path in files}
    assert len(files) == _FILES
    assert len(text.split()) == 400
    return int(text.split()[0])


def script_in(folder: Path) -> Script:
    return Script(folder, _CODE.format(files=_FILES).replace("\\\\n", "\\n"))


def published_by(script: Script) -> int:
    return max((int(number) for _, number in script.log("published")), default=-1)


def test_an_artefact_is_whole_after_a_kill_at_any_instant(tmp_path: Path) -> None:
    script = script_in(tmp_path)
    chance = random.Random(_KILLS)
    latest = -1
    for _ in range(_KILLS):
        before = len(script.log("published"))
        with killed_at_exit(script.start(str(latest + 1), "1")) as process:
            wait_until(lambda n=before: len(script.log("published")) > n, 30, "a publication")
            time.sleep(chance.random() * 0.1)
            process.kill()
            process.wait()
            wait_until(lambda p=process.pid: not alive_in_session(p), 10, "its end")
        found = content_of(load_artefact(tmp_path / "node").path)
        reported = published_by(script)
        assert found in {reported, reported + 1}  # killed between publishing and reporting
        latest = found
    folders = [path for path in (tmp_path / "node" / "node_artefact").iterdir() if path.is_dir()]
    assert len(folders) <= 6  # what the killed attempt left is removed by the next one


def test_two_runs_race_and_readers_find_whole_artefacts_all_the_time(tmp_path: Path) -> None:
    script = script_in(tmp_path)
    failed: list[str] = []
    seen: set[int] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                version = load_artefact(tmp_path / "node").path
            except ResultMissingError as error:
                failed.append(str(error))
                continue
            with suppress(ResultMissingError), held([version]):
                try:
                    seen.add(content_of(version))
                except (OSError, ValueError, AssertionError) as error:
                    failed.append(repr(error))

    reader = threading.Thread(target=read)
    with killed_at_exit(script.start("0", "2")), killed_at_exit(script.start("1", "2")):
        wait_until(lambda: bool(script.log("published")), 60, "a publication")
        reader.start()
        try:
            wait_until(lambda: len({pid for pid, _ in script.log("published")}) == 2, 60, "both")
            wait_until(lambda: len(script.log("published")) >= 30, 120, "30 publications")
        finally:
            stop.set()
            reader.join()
    numbers = [int(number) for _, number in script.log("published")]
    assert len(numbers) == len(set(numbers))
    assert seen
    assert failed == []
