"""Search for files that the readers cannot handle, guided by the code that they reach.

python tests/fuzzing/fuzz.py journal --seconds 1800 --corpus /some/folder
python tests/fuzzing/fuzz.py journal --minimise --corpus /some/folder

Needs the extra ``fuzz``. Without ``--minimise``, new examples are added to the folder, and a
failing example is saved there as ``crash-...``. With it, the few examples that reach all the code
of the others are copied to ``tests/fuzzing/corpus``, where the tests replay them.
"""

import argparse
import sys
from pathlib import Path

import atheris

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["dagster_dataops"]):
    from tests.fuzzing import journal, lines, selectors

_KEPT = Path(__file__).parent / "corpus"


def _checked(target: str, data: bytes) -> None:
    if target == "journal":
        journal.check(data)
    elif target == "selectors":
        selectors.check(data)
    elif data:
        lines.check(data)


def _fuzz(target: str, how: list[str]) -> None:
    """Hand over to libFuzzer, which ends the process, and calls it again to minimise."""
    again = f"{sys.executable} {Path(__file__).absolute()} {target}"
    atheris.Setup([again, *how], lambda data: _checked(target, data))
    atheris.Fuzz()


def main() -> None:
    if any(argument.startswith("-merge_inner") for argument in sys.argv):
        _fuzz(sys.argv[1], sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=("journal", "lines", "selectors"))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--minimise", action="store_true")
    given = parser.parse_args()
    given.corpus.mkdir(parents=True, exist_ok=True)
    kept = _KEPT / given.target
    kept.mkdir(parents=True, exist_ok=True)
    if given.minimise:
        _fuzz(given.target, ["-merge=1", str(kept), str(given.corpus)])
    limits = [f"-max_total_time={given.seconds}", f"-seed={given.seed}", "-max_len=1024"]
    found = [f"-artifact_prefix={given.corpus}/", str(given.corpus), str(kept)]
    _fuzz(given.target, [*limits, "-print_final_stats=1", *found])


if __name__ == "__main__":
    main()
