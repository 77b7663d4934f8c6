"""The command line: ``python -m dagster_dataops trace FOLDER --line N``, and other commands."""

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson

from dagster_dataops.checkpoints.places.working_copies import clean
from dagster_dataops.configuration import config, root_setting
from dagster_dataops.datasets.file_values.unnamed_files import GRACE_DAYS, prune_files
from dagster_dataops.errors import DataOpsError
from dagster_dataops.foundation.places.url_forms import folder_setting
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.models.batches.cancellation import cancel_batches
from dagster_dataops.models.calls.client import ModelClient
from dagster_dataops.pipelines.tracing.tracer import trace
from dagster_dataops.training.filestores.energon.energon_preparation import prepare_energon


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status.

    Args:
        arguments: Those of the command line by default.
    """
    given = _parser().parse_args(arguments)
    try:
        text = given.run(given)
    except DataOpsError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{text}\n")
    return 0


def _trace(given: argparse.Namespace) -> str:
    found = trace(
        _folder(given.folder, given.root),
        given.line,
        source_line=given.source_line,
        source=given.source,
    )
    if given.json:
        return orjson.dumps(found.to_json(), option=orjson.OPT_INDENT_2).decode()
    return str(found)


def _prepare(given: argparse.Namespace) -> str:
    split = dict(given.split) if given.split else None
    counts = prepare_energon(
        given.folder,
        split=split,
        overwrite=given.overwrite,
        media_metadata=given.media_metadata,
    )
    return f"{counted(sum(counts.values()), 'samples')} in {counted(len(counts), 'shards')}"


def _share(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    return name, float(share)


def _cancel(given: argparse.Namespace) -> str:
    client = ModelClient(base_url=given.base_url)
    found = asyncio.run(cancel_batches(_folder(given.folder, given.root), client))
    return "\n".join(f"cancelled {batch}" for batch in found) or "no batch waits for the server"


def _clean(given: argparse.Namespace) -> str:
    scratch = config.data_process_scratch
    if given.scratch:
        scratch = folder_setting("--scratch", given.scratch)
    found = clean(scratch, given.days)
    deleted = f"{counted(found.files, 'files')} of {found.size_bytes:,} bytes deleted"
    return f"{scratch}: {deleted}; {found.in_use:,} of the working copies are in use"


def _prune(given: argparse.Namespace) -> str:
    from dagster_dataops.assets.pruning import prune  # imports Dagster

    _, text = prune(given.root, given.module_name, given.python_file, delete=given.yes)
    return text


def _prune_files(given: argparse.Namespace) -> str:
    options = config.storage_options
    root = root_setting("ROOT", given.root, options)
    also = [root_setting("--also", one, options) for one in given.also]
    _, text = prune_files(root, given.days, also, delete=given.yes)
    return text


def _run(given: argparse.Namespace) -> str:
    from dagster_dataops.assets.external_run import run_assets  # imports Dagster

    return run_assets(
        given.module_name,
        given.python_file,
        given.asset,
        partition=given.partition,
        checks=given.checks,
    )


def _view(given: argparse.Namespace) -> str:
    from dagster_dataops.pipelines.view.serving import serve  # the web server

    shown = given.shown if given.shown is not None else str(config.results_root())
    return serve(shown, given.port, opens=given.open)


def _folder(given: str, root: str | None) -> Path:
    """Return the folder as given, or below the root of the results."""
    if root is None and Path(given).expanduser().exists():
        return Path(given)
    return (folder_setting("--root", root) if root else config.data_process_path) / given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dagster_dataops")
    commands = parser.add_subparsers(dest="command", required=True)
    text = "Show from which source line a record came, or what became of a source line."
    command = _added(commands, "trace", _trace, text)
    _add_folder(command)
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--line", type=int, help="line of its result, counted from 1")
    what.add_argument("--source-line", type=int, help="line of a source, counted from 1")
    command.add_argument("--source", help="which source, if there are several: path or file name")
    command.add_argument("--json", action="store_true", help="print JSON")
    _add_prepare(commands)
    _add_clean(commands)
    _add_prune(commands)
    _add_prune_files(commands)
    _add_run(commands)
    _add_view(commands)
    text = "Batches of requests that wait for the server of a model."
    batches = commands.add_parser("batches", help=text, description=text)
    text = "Cancel the batches of a node. What the server has answered is paid and used."
    command = _added(batches.add_subparsers(required=True), "cancel", _cancel, text)
    _add_folder(command)
    command.add_argument(
        "--base-url",
        help="address of the server; by default DATAOPS_LLM_BASE_URL, else OPENAI_BASE_URL. "
        "The key is OPENAI_API_KEY",
    )
    return parser


def _add_prepare(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "Prepare tar shards for Megatron-Energon, as crude data."
    command = _added(commands, "prepare", _prepare, text)
    command.add_argument("folder", metavar="FOLDER", help="folder with the shards")
    command.add_argument(
        "--split",
        nargs="+",
        type=_share,
        metavar="PART=SHARE",
        help="share of the shards of each part, as in train=9 val=1; by default all are train",
    )
    command.add_argument("--overwrite", action="store_true", help="replace an earlier preparation")
    command.add_argument(
        "--media-metadata", action="store_true", help="write down sizes of images and durations"
    )


def _add_clean(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "Delete the working copies of object stores that were not used for some days."
    command = _added(commands, "clean", _clean, text)
    command.add_argument("--scratch", help="their folder; by default that of the configuration")
    command.add_argument(
        "--days",
        type=float,
        default=7.0,
        help="keep copies that were used since; more than the longest run takes. 7 by default",
    )


def _add_prune(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "List folders below a root that belong to no asset or partition, and their space."
    command = _added(commands, "prune", _prune, text)
    command.add_argument("root", metavar="ROOT", help="root of the results, a folder")
    command.add_argument(
        "-m",
        "--module-name",
        action="append",
        default=[],
        help="module with definitions; give those of all code locations that use the root",
    )
    command.add_argument(
        "-f", "--python-file", action="append", default=[], help="Python file with definitions"
    )
    _add_yes(command)


def _add_prune_files(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "List files that operators made and that no result below a root names any more."
    command = _added(commands, "prune-files", _prune_files, text)
    command.add_argument("root", metavar="ROOT", help="root of the results, a folder or a URL")
    command.add_argument(
        "--days",
        type=float,
        default=GRACE_DAYS,
        help="keep files that were stored since; more than the longest run takes. 7 by default",
    )
    command.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="PATH",
        help="another folder, file or URL whose records name files of the root",
    )
    _add_yes(command)


def _add_run(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = (
        "Materialize assets in this process. If a client of Dagster Pipes has started it, the "
        "results are reported to the asset that it was started for."
    )
    command = _added(commands, "run", _run, text)
    command.add_argument(
        "asset",
        nargs="*",
        metavar="ASSET",
        help="key of an asset; by default those of the step that started this process, else all",
    )
    command.add_argument(
        "-m", "--module-name", action="append", default=[], help="module with definitions"
    )
    command.add_argument(
        "-f", "--python-file", action="append", default=[], help="Python file with definitions"
    )
    command.add_argument("--partition", help="its key; by default that of the step")
    command.add_argument(
        "--checks",
        action="store_true",
        help="also report the checks of the assets, which the launching asset must declare; "
        "`dataops.run_by_pipes` asks for them itself",
    )


def _add_view(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "Show nodes and their records as a local web page, which changes nothing."
    command = _added(commands, "view", _view, text)
    command.add_argument(
        "shown",
        metavar="ROOT",
        nargs="?",
        help="folder or URL of the results, of a pipeline or of a node, or FILE.py:NAME, a Python "
        "file and the name of a pipeline in it; by default the root of the configuration",
    )
    command.add_argument(
        "--port", type=int, default=8765, help="port on this machine, 0 for any; 8765 by default"
    )
    command.add_argument("--open", action="store_true", help="open a browser")


def _added(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Callable[[argparse.Namespace], str],
    text: str,
) -> argparse.ArgumentParser:
    """Add a command with its function and description; return its parser."""
    command = commands.add_parser(name, help=text, description=text)
    command.set_defaults(run=run)
    return command


def _add_yes(command: argparse.ArgumentParser) -> None:
    choice = command.add_mutually_exclusive_group()
    choice.add_argument("--dry-run", action="store_true", help="only list them, the default")
    choice.add_argument("--yes", action="store_true", help="delete them")


def _add_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "folder",
        metavar="FOLDER",
        help="folder of a node, of one of its partitions or outputs; also below the root",
    )
    command.add_argument("--root", help="root of the results; by default that of the configuration")


if __name__ == "__main__":
    sys.exit(main())
