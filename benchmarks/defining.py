"""Definitions at scale: operators in pipelines against as many plain assets of Dagster.

``python -m benchmarks.defining [--rounds N] [--pipelines N] [--nodes N]`` prints what a process
pays that loads a code location: CPU seconds of the definitions, the repository and its snapshot,
with the imports of Dagster and of this package left out, and the bytes of the snapshot, as a code
server sends it (without the snapshots of jobs) and with all of them. Each measurement is a process
of its own, the contenders run in turn, and the figures are medians of the ratios of each round.

A plain asset has what every asset of an operator has: a blocking check, configuration, kinds, a
code version and an upstream asset; and each group of them has a job. No two nodes have the same
options. The contenders are operators that are functions of the user, each its own, and operators
of the library.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import dagster as dg
from dagster._core.remote_representation.external_data import RepositorySnap  # noqa: TID251 - no public name

import dagster_dataops

MOST: Final = 1.5  # goal of each ratio
_LIBRARY: Final = (
    "text.NormalizeWhitespace()",
    "text.NormalizePunctuation()",
    "filters.WordCount(min_words={at})",
    "text.RemoveLongWords()",
    "pii.Replace()",
    "text.RemoveLinks()",
    "filters.MeanWordLength()",
    "dedup.Exact()",
)
_OURS: Final = """
from dagster_dataops import DataOpsResource, build_definitions, data, data_register, pipeline
import dagster as dg
made = []
resource = DataOpsResource(root="/data/results")
"""
_FUNCTION: Final = '''
@data_register("data.group_{at}")
def step(record: dict, input_key: str = "text", suffix: str = "!", times: int = 1) -> dict:
    """Return the record with a longer text."""
    record[input_key] += suffix * times
    return record
'''
_PLAIN: Final = """
import dagster as dg
assets, jobs = [], []
"""
_ASSET: Final = '''
@dg.asset(
    key=["p{number}", "node_{node}"], {upstream}, group_name="p{number}",
    kinds={{"python", "json"}}, code_version="{at}",
    check_specs=[dg.AssetCheckSpec("good", asset=["p{number}", "node_{node}"], blocking=True)],
    config_schema={{
        "input_key": dg.Field(str, default_value="text"),
        "suffix": dg.Field(str, default_value="{at}"),
        "times": dg.Field(int, default_value=1),
    }},
)
def step(context{argument}):
    """Return the record with a longer text."""
    yield dg.Output(None)
    yield dg.AssetCheckResult(passed=True)

assets.append(step)
'''


def own(pipelines: int, nodes: int) -> Iterator[str]:
    """Yield the code of pipelines of functions."""
    yield _OURS
    for number in range(pipelines):
        yield from (_FUNCTION.format(at=f"{number}_{node}") for node in range(nodes))
        yield from _pipeline(
            number,
            [f"group_{number}_{node}.step(suffix='{number}_{node}')" for node in range(nodes)],
        )
    yield "defs = dg.Definitions.merge(*made)"


def library(pipelines: int, nodes: int) -> Iterator[str]:
    """Yield the code of pipelines of operators of the library."""
    yield _OURS
    for number in range(pipelines):
        chosen = [_LIBRARY[node % len(_LIBRARY)] for node in range(nodes)]
        yield from _pipeline(
            number, [text.format(at=1 + number * nodes + at) for at, text in enumerate(chosen)]
        )
    yield "defs = dg.Definitions.merge(*made)"


def _pipeline(number: int, operators: list[str]) -> Iterator[str]:
    yield f'with pipeline("p{number}") as ppl:'
    yield from (f"    ppl.node_{node} = data.{made}" for node, made in enumerate(operators))
    yield f'made.append(build_definitions(ppl, source="/data/{number}.jsonl", resource=resource))'


def plain(pipelines: int, nodes: int) -> Iterator[str]:
    """Yield the code of as many assets of Dagster."""
    yield _PLAIN
    for number in range(pipelines):
        yield f'assets.append(dg.AssetSpec(["p{number}", "texts"], group_name="p{number}"))'
        for node in range(nodes):
            before = f'["p{number}", "node_{node - 1}"]'
            upstream = (
                f'ins={{"before": dg.AssetIn({before})}}'
                if node
                else f'deps=[["p{number}", "texts"]]'
            )
            yield _ASSET.format(
                number=number,
                node=node,
                at=f"{number}_{node}",
                upstream=upstream,
                argument=", before" if node else "",
            )
        chosen = f'dg.AssetSelection.groups("p{number}")'
        yield f'jobs.append(dg.define_asset_job("p{number}_pipeline", selection={chosen}))'
    yield "defs = dg.Definitions(assets=assets, jobs=jobs)"


CONTENDERS: Final[Mapping[str, Callable[[int, int], Iterator[str]]]] = {
    "plain": plain,
    "own": own,
    "library": library,
}


def measured(name: str, pipelines: int, nodes: int, folder: Path) -> dict[str, float]:
    """Return CPU seconds, bytes and number of jobs of a contender, in this process.

    Args:
        name: One of `CONTENDERS`.
        pipelines: The number of pipelines, or of groups of assets.
        nodes: The number of nodes of each.
        folder: An empty folder for the code, which inspection of the code needs.
    """
    path = folder / f"{name}_definitions.py"
    path.write_text("\n".join(CONTENDERS[name](pipelines, nodes)))
    os.utime(path, (0, 0))  # as in a deployment, the code is older than the process
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    began = time.process_time()
    spec.loader.exec_module(module)
    repository = module.defs.get_repository_def()
    sent = dg.serialize_value(RepositorySnap.from_def(repository, defer_snapshots=True))
    seconds = time.process_time() - began
    whole = dg.serialize_value(RepositorySnap.from_def(repository, defer_snapshots=False))
    jobs = len(repository.get_all_jobs())
    return {"seconds": seconds, "sent": len(sent), "whole": len(whole), "jobs": jobs}


def of_process(name: str, pipelines: int, nodes: int) -> dict[str, float]:
    """Return what `measured` returns in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.defining"]
    sizes = ["--pipelines", str(pipelines), "--nodes", str(nodes)]
    done = subprocess.run(
        [*command, "--measure", name, *sizes], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def ratios(rounds: int, pipelines: int, nodes: int) -> dict[str, dict[str, float]]:
    """Return the median ratio of each contender to plain assets, for each quantity."""
    names = list(CONTENDERS)
    found = []
    for number in range(rounds):
        order = names if number % 2 else names[::-1]
        found.append({name: of_process(name, pipelines, nodes) for name in order})
    return {
        name: {
            what: statistics.median(one[name][what] / one["plain"][what] for one in found)
            for what in ("seconds", "sent", "whole")
        }
        for name in names
        if name != "plain"
    }


def main() -> None:
    """Measure one contender, or all of them in turn, and print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pipelines", type=int, default=50)
    parser.add_argument("--nodes", type=int, default=20, help="nodes of each pipeline")
    parser.add_argument("--measure", choices=CONTENDERS, help="one contender, in this process")
    given = parser.parse_args()
    if given.measure:
        assert dagster_dataops.build_definitions  # imported before the clock starts
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measured(given.measure, given.pipelines, given.nodes, Path(folder))))
        return
    print(f"{'operators':10} {'CPU':>6} {'snapshot':>9} {'with jobs':>10}   goal {MOST}")
    for name, row in ratios(given.rounds, given.pipelines, given.nodes).items():
        print(f"{name:10} {row['seconds']:6.2f} {row['sent']:9.2f} {row['whole']:10.2f}")


if __name__ == "__main__":
    main()
