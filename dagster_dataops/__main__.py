"""The command line: ``python -m dagster_dataops trace FOLDER --line N``, and other commands."""

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import orjson

from dagster_dataops.checkpoints.places.placement import make_whole
from dagster_dataops.checkpoints.places.working_copies import clean
from dagster_dataops.checkpoints.publish.other_versions import check_format
from dagster_dataops.configuration import config, folder_at, root_setting
from dagster_dataops.datasets.file_values.unnamed_files import GRACE_DAYS, prune_files
from dagster_dataops.errors import DataOpsError
from dagster_dataops.foundation.places.url_forms import folder_setting, is_url
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.models.batches.cancellation import cancel_batches
from dagster_dataops.models.calls.client import ModelClient
from dagster_dataops.pipelines.history.difference import diff
from dagster_dataops.pipelines.history.result_versions import keep_only, restore, versions
from dagster_dataops.pipelines.tracing.tracer import trace
from dagster_dataops.training.filestores.energon.energon_preparation import prepare_energon


class _Json(Protocol):
    """A result that JSON can hold."""

    def to_json(self) -> Any:
        """Return the values."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status.

    Args:
        arguments: Those of the command line by default.
    """
    options = _parser().parse_args(arguments)
    try:
        text = options.run(options)
    except DataOpsError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{text}\n")
    return 0


def _trace(options: argparse.Namespace) -> str:
    trail = trace(
        _folder(options.folder, options.root),
        options.line,
        source_line=options.source_line,
        source=options.source,
    )
    return _printed(trail, options)


def _versions(options: argparse.Namespace) -> str:
    folder = _folder(options.folder, options.root)
    if options.keep is not None:
        removed = keep_only(folder, options.keep)
        return f"removed: {', '.join(map(str, removed)) or 'none'}"
    return "\n".join(map(str, versions(folder)))


def _diff(options: argparse.Namespace) -> str:
    folder = _folder(options.folder, options.root)
    return _printed(diff(folder, options.before, options.after, samples=options.samples), options)


def _restore(options: argparse.Namespace) -> str:
    root, folder = _root(options.root), _folder(options.folder, options.root)
    inside = folder.absolute().is_relative_to(root.absolute())
    return str(restore(folder, options.version, root if inside else None))


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        msg = f"{text!r} is not a number of at least 0"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _prepare(options: argparse.Namespace) -> str:
    split = dict(options.split) if options.split else None
    counts = prepare_energon(
        options.folder,
        split=split,
        overwrite=options.overwrite,
        media_metadata=options.media_metadata,
    )
    return f"{counted(sum(counts.values()), 'samples')} in {counted(len(counts), 'shards')}"


def _share(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    return name, float(share)


def _cancel(options: argparse.Namespace) -> str:
    client = ModelClient(base_url=options.base_url)
    cancelled = asyncio.run(cancel_batches(_folder(options.folder, options.root), client))
    return "\n".join(f"cancelled {batch}" for batch in cancelled) or "no batch waits for the server"


def _clean(options: argparse.Namespace) -> str:
    scratch = config.data_process_scratch
    if options.scratch:
        scratch = folder_setting("--scratch", options.scratch)
    removed = clean(scratch, options.days)
    deleted = f"{counted(removed.files, 'files')} of {removed.size_bytes:,} bytes deleted"
    return f"{scratch}: {deleted}; {removed.in_use:,} of the working copies are in use"


def _prune(options: argparse.Namespace) -> str:
    from dagster_dataops.assets.pruning import prune  # imports Dagster

    _, text = prune(options.root, options.module_name, options.python_file, delete=options.yes)
    return text


def _prune_files(arguments: argparse.Namespace) -> str:
    options = config.storage_options
    root = root_setting("ROOT", arguments.root, options)
    also = [root_setting("--also", place, options) for place in arguments.also]
    _, text = prune_files(root, check_format, arguments.days, also, delete=arguments.yes)
    return text


def _whole(options: argparse.Namespace) -> str:
    place = root_setting("folder", options.folder, config.storage_options)
    lines = [
        f"{name}: {f'{size:,} bytes' if size else 'was not in parts'}"
        for name, size in make_whole(place).items()
    ]
    return "\n".join(lines) or f"{place}: no result is there"


def _run(options: argparse.Namespace) -> str:
    from dagster_dataops.assets.external_run import run_assets  # imports Dagster

    return run_assets(
        options.module_name,
        options.python_file,
        options.asset,
        partition=options.partition,
        checks=options.checks,
        redo_records=options.redo_records,
    )


def _view(options: argparse.Namespace) -> str:
    from dagster_dataops.pipelines.view.serving import serve  # the web server

    shown = options.shown if options.shown is not None else str(config.results_root())
    reviews = options.review_in if options.review or options.review_in else None
    return serve(shown, options.port, reviews=reviews, opens=options.open)


def _try(options: argparse.Namespace) -> str:
    from dagster_dataops.models.tried_records import try_pipeline  # rare
    from dagster_dataops.pipelines.loaded_pipeline import pipeline_in

    file, _, name = options.pipeline.rpartition(":")
    if not file:
        file, name = name, "ppl"
    ppl = pipeline_in(file, name, "--pipeline")
    folder = _folder(options.folder, options.root)
    calls = not options.no_calls
    tried = try_pipeline(folder, ppl, options.records, node=options.node, calls=calls)
    return _printed(tried, options)


def _printed(result: _Json, options: argparse.Namespace) -> str:
    """Return a result as text, with ``--json`` as JSON."""
    if options.json:
        return orjson.dumps(result.to_json(), option=orjson.OPT_INDENT_2).decode()
    return str(result)


def _root(text: str | None) -> Path:
    """Return the root of the results; for a URL its working copy."""
    if not text:
        return config.data_process_path
    return root_setting("--root", text, config.storage_options).path


def _folder(text: str, root: str | None) -> Path:
    """Return the folder as given or below the root of the results; for a URL its working copy."""
    if is_url(text):
        return folder_at(text).path
    if root is None and Path(text).expanduser().exists():
        return Path(text)
    return _root(root) / text


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
    _add_json(command)
    _add_history(commands)
    _add_prepare(commands)
    _add_clean(commands)
    _add_prune(commands)
    _add_prune_files(commands)
    _add_run(commands)
    text = "Write a result that is in parts on an object store as one object."
    command = _added(commands, "whole", _whole, text)
    command.add_argument("folder", metavar="FOLDER", help="URL of the folder of its node")
    _add_view(commands)
    _add_try(commands)
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


def _add_history(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "List the versions of a result: those that _keep_versions has kept, and the present one."
    command = _added(commands, "versions", _versions, text)
    _add_folder(command)
    command.add_argument(
        "--keep", type=_count, metavar="N", help="remove the oldest versions, so that N are left"
    )
    text = "Show how many records are new, gone and changed between two versions, and why."
    command = _added(commands, "diff", _diff, text)
    _add_folder(command)
    command.add_argument(
        "before",
        nargs="?",
        metavar="A",
        help="number of the first version; by default the newest one before B",
    )
    command.add_argument(
        "after",
        nargs="?",
        default="current",
        metavar="B",
        help="number of the second version; by default the present result",
    )
    command.add_argument(
        "--samples", type=_count, default=5, metavar="N", help="lines shown of each kind; 5"
    )
    _add_json(command)
    text = "Publish an earlier version of a result again. The present one is kept as a version."
    command = _added(commands, "restore", _restore, text)
    _add_folder(command)
    command.add_argument("version", metavar="VERSION", help="number of the version")


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
    command.add_argument("root", metavar="ROOT", help="root of the results, a folder or a URL")
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
    command.add_argument(
        "--redo-records",
        metavar="CONDITION",
        help="process only those records of one ASSET again that fulfil it, such as "
        "\"drop_reason == 'timeout'\"; all others keep their outcome",
    )


def _add_view(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = (
        "Show nodes and their records as a local web page, which changes nothing; with --review "
        "people decide there what `review.Ask` asks."
    )
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
    command.add_argument(
        "--review", action="store_true", help="take decisions about the records of `review.Ask`"
    )
    command.add_argument(
        "--review-in",
        action="append",
        default=[],
        metavar="FOLDER",
        help="the same, for reviews below a folder, that of the option `to`",
    )


def _add_try(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = (
        "Run the present code of a node on some records that it has processed before, and show "
        "which outcomes differ. Nothing is published. A model is called only for requests that "
        "have no stored reply."
    )
    command = _added(commands, "try", _try, text)
    _add_folder(command)
    command.add_argument(
        "--records", type=int, default=200, help="how many records, spread evenly; 200 by default"
    )
    command.add_argument(
        "--pipeline",
        metavar="FILE.py:NAME",
        default="definitions.py:ppl",
        help="Python file and name of the pipeline in it; definitions.py:ppl by default",
    )
    command.add_argument(
        "--node", default="", help="name of the node in the pipeline; by default that of the result"
    )
    command.add_argument(
        "--no-calls",
        action="store_true",
        help="call no model: count the records that need a call without a stored reply",
    )
    _add_json(command)


def _added(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Callable[[argparse.Namespace], str],
    text: str,
) -> argparse.ArgumentParser:
    """Return the parser of a new command, which calls ``run`` and is described by ``text``."""
    command = commands.add_parser(name, help=text, description=text)
    command.set_defaults(run=run)
    return command


def _add_yes(command: argparse.ArgumentParser) -> None:
    choice = command.add_mutually_exclusive_group()
    choice.add_argument("--dry-run", action="store_true", help="only list them, the default")
    choice.add_argument("--yes", action="store_true", help="delete them")


def _add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")


def _add_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "folder",
        metavar="FOLDER",
        help="folder or URL of a node, of one of its partitions or outputs; also below the root",
    )
    command.add_argument(
        "--root", help="root of the results, also a URL; by default that of the configuration"
    )


if __name__ == "__main__":
    sys.exit(main())
