"""`RedoOffer`: how to process the records of a page again, as texts to copy."""

import shlex
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import orjson

from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.datasets.published_files import PARTITIONS
from dagster_dataops.operators.kinds.kind import Tracing
from dagster_dataops.operators.kinds.kind_table import kind_named
from dagster_dataops.pipelines.view.shown.redo_conditions import RedoCondition
from dagster_dataops.pipelines.view.viewed_root import ViewedNode

_OF_PARTITION: Final = f"/{PARTITIONS}/"  # in a key
_PLAIN: Final = "python-"  # the beginning of the id of a run in plain Python


@dataclass(frozen=True)
class RedoOffer:
    """How to process records again.

    Attributes:
        condition: The condition that chooses them; empty if they cannot be chosen.
        reason: Why they cannot be chosen; empty if they can.
        notes: How the choice differs from the records of the page.
        texts: Each text to copy, with its title.
    """

    condition: str = ""
    reason: str = ""
    notes: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, node: ViewedNode, chosen: RedoCondition, *, published: bool) -> "RedoOffer":
        """Return the offer for some records of a node."""
        reason = _refused(node, published=published) or chosen.reason
        if reason:
            return cls(reason=reason)
        return cls(chosen.text, notes=chosen.notes, texts=tuple(_texts(node, chosen.text)))


def _refused(node: ViewedNode, *, published: bool) -> str:
    """Return why the records of a node cannot be processed again one by one; empty if they can."""
    manifest = node.manifest
    if manifest is None or not manifest.operator or not manifest.inputs:
        return "no operator made them."
    kind = kind_named(manifest.kind)
    reasons = {
        "they are of an earlier result. Only records of the present one can be chosen.": (
            node.is_kept
        ),
        "the result was edited or replaced since the run that published it.": not published,
        f"{kind.as_a_whole or 'its records are not processed one by one'}.": (
            bool(kind.as_a_whole) or kind.trace is not Tracing.RECORD
        ),
        "the run wrote no map from records to result lines: _trace=False.": not manifest.traced,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def is_chain(manifest: Manifest | None) -> bool:
    """Return whether the operator of a node is a chain, which may drop parts of a record."""
    return manifest is not None and bool(manifest.funnel)


def _texts(node: ViewedNode, condition: str) -> list[tuple[str, str]]:
    text = orjson.dumps(condition).decode()
    launchpad = (
        "In the launchpad, in the configuration of the operator",
        f"resume: {{records: {text}}}",
    )
    if node.manifest is not None and node.manifest.run.startswith(_PLAIN):
        chosen = {"records": condition, "node": node.folder.name}
        value = shlex.quote(orjson.dumps(chosen).decode())
        return [
            (
                "On the command line; FILE.py is the file that runs the pipeline",
                f"DATAOPS_DATA_PROCESS_RESUME={value} python FILE.py",
            ),
            launchpad,
        ]
    words = ["python -m dagster_dataops run", *_asset(node), "-m MODULE"]
    command = " ".join([*words, "--redo-records", shlex.quote(condition)])
    return [("On the command line; MODULE is the module with the definitions", command), launchpad]


def _asset(node: ViewedNode) -> list[str]:
    """Return the words of a command that name the asset of a node."""
    key, _, rest = node.key.partition(_OF_PARTITION)
    output = next(filter(None, node.outputs), "")
    names = [unquote(part) for part in key.split("/")]
    words = [shlex.quote("/".join([*names, *filter(None, [output])]))]
    if rest:
        partition = unquote(rest.removesuffix(f"/{node.folder.name}"))
        words += ["--partition", shlex.quote(partition)]
    return words
