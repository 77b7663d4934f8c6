"""Write a frozen folder with the version of the package that is on the path.

    python write.py FOLDER ADDRESS     # of a server of models; see `freeze.py`
    python write.py --states FOLDER    # of `state_cases`

The environment has the address of an S3 server with the bucket ``results``.

Runs that are to be unfinished are processes that kill themselves.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import frozen_cases as cases

from dagster_dataops import DataLoader2, config, data
from dagster_dataops.library import GROUPS

BUCKET = "s3://results/root"


def die(name: str, address: str, root: str) -> None:
    """Run one of the cases that die, in this process."""
    config.data_process_path, config.data_process_resume = root, True
    if name == "killed_publishing":
        Path.replace = _die_at_result  # type: ignore[method-assign]
    cases.UNFINISHED[name](address, cases.DIES)(str(Path("input.jsonl").absolute()))


_replace = Path.replace


def _die_at_result(path: Path, target: Any) -> Path:
    """Die when the draft of a result is to be put in place."""
    if str(target).endswith("_results.jsonl"):
        os.killpg(0, signal.SIGKILL)
    return _replace(path, target)


def library() -> dict[str, list[str]]:
    """Return the options of each operator of the library."""
    return {
        f"{group}.{name}": [one.name for one in getattr(found, name).__dataops_spec__.options]
        for group in GROUPS
        for found in [getattr(data, group)]
        for name in dir(found)
    }


def states() -> dict[str, Any]:
    """Return the states of streams in their middle."""
    found = {}
    for name, make in cases.STREAMS.items():
        stream = make().and_return(seed=5)
        iterator = iter(stream)
        for _ in range(4):
            next(iterator)
        found[name] = stream.state_dict()
    return found


def loader_state() -> Any:
    loader = DataLoader2(cases.STREAMS["shuffle"]())
    loader.seed(3)
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    state = loader.state_dict()
    loader.shutdown()
    return state


def write(folder: Path, address: str) -> None:
    """Write all that is frozen into a folder."""
    folder.mkdir(parents=True)
    os.chdir(folder)
    given = _write_input()
    config.data_process_resume = True
    for root, finished, unfinished in (
        ("root", cases.FINISHED, cases.UNFINISHED),
        (BUCKET, cases.STORED, cases.STORED_UNFINISHED),
    ):
        config.data_process_path = root
        for name in finished:
            cases.FINISHED[name](address)(given)
        for name in unfinished:
            command = [sys.executable, __file__, "--die", name, address, root]
            subprocess.run(command, check=False, start_new_session=True)
    Path("library.json").write_text(json.dumps(library(), indent=0))
    Path("streams.json").write_text(json.dumps(states(), indent=1))
    Path("loader.json").write_text(json.dumps(loader_state(), indent=1))


def write_states(folder: Path) -> None:
    """Write the states of `state_cases` into a folder."""
    import state_cases

    folder.mkdir(parents=True)
    os.chdir(folder)
    source = _write_input()
    config.data_process_path, config.data_process_resume = "root", True
    state_cases.write(source, Path("root"))
    for name in state_cases.KILLED:
        command = [sys.executable, __file__, "--die-state", name, source]
        subprocess.run(command, check=False, start_new_session=True)


def die_state(name: str, source: str) -> None:
    """Run one of the states that die, in this process."""
    import state_cases

    config.data_process_path = "root"
    state_cases.run(name, source, cases.DIES)


def _write_input() -> str:
    lines = "".join(json.dumps(record) + "\n" for record in cases.RECORDS)
    Path("input.jsonl").write_text(lines)
    return str(Path("input.jsonl").absolute())


if __name__ == "__main__":
    if sys.argv[1] == "--die":
        die(*sys.argv[2:])
    elif sys.argv[1] == "--die-state":
        die_state(*sys.argv[2:])
    elif sys.argv[1] == "--states":
        write_states(Path(sys.argv[2]).absolute())
    else:
        write(Path(sys.argv[1]).absolute(), sys.argv[2])
