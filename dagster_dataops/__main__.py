"""The command line: ``python -m dagster_dataops trace FOLDER --line N``, and ``prepare FOLDER``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson

from dagster_dataops.configuration import config, folder_setting
from dagster_dataops.errors import DataOpsError
from dagster_dataops.filestores.energon_preparation import prepare_energon
from dagster_dataops.tracing.tracer import trace


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status.

    Args:
        arguments: Those of the command line by default.
    """
    given = _parser().parse_args(arguments)
    try:
        text = _prepared(given) if given.command == "prepare" else _traced(given)
    except DataOpsError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{text}\n")
    return 0


def _traced(given: argparse.Namespace) -> str:
    found = trace(
        _folder(given.folder, given.root),
        given.line,
        source_line=given.source_line,
        source=given.source,
    )
    if given.json:
        return orjson.dumps(found.to_json(), option=orjson.OPT_INDENT_2).decode()
    return str(found)


def _prepared(given: argparse.Namespace) -> str:
    split = dict(given.split) if given.split else None
    counts = prepare_energon(given.folder, split=split, overwrite=given.overwrite)
    return f"{sum(counts.values()):,} samples in {len(counts):,} shards"


def _share(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    return name, float(share)


def _folder(given: str, root: str | None) -> Path:
    """Return the folder as given, or below the root of the results."""
    if root is None and Path(given).expanduser().exists():
        return Path(given)
    return (folder_setting("--root", root) if root else config.data_process_path) / given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dagster_dataops")
    commands = parser.add_subparsers(dest="command", required=True)
    text = "Show from which source line a record came, or what became of a source line."
    command = commands.add_parser("trace", help=text, description=text)
    command.add_argument(
        "folder",
        metavar="FOLDER",
        help="folder of a node, of one of its partitions or outputs; also below the root",
    )
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--line", type=int, help="line of its result, counted from 1")
    what.add_argument("--source-line", type=int, help="line of a source, counted from 1")
    command.add_argument("--source", help="which source, if there are several: path or file name")
    command.add_argument("--root", help="root of the results; by default that of the configuration")
    command.add_argument("--json", action="store_true", help="print JSON")
    text = "Prepare tar shards for Megatron-Energon, as crude data."
    command = commands.add_parser("prepare", help=text, description=text)
    command.add_argument("folder", metavar="FOLDER", help="folder with the shards")
    command.add_argument(
        "--split",
        nargs="+",
        type=_share,
        metavar="PART=SHARE",
        help="share of the shards of each part, as in train=9 val=1; by default all are train",
    )
    command.add_argument("--overwrite", action="store_true", help="replace an earlier preparation")
    return parser


if __name__ == "__main__":
    sys.exit(main())
