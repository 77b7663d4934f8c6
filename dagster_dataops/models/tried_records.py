"""`try_pipeline`: run the present code of a node on some of its records; compare the outcomes.

Nothing is published and nothing is written into the folder of the node: the code runs in a
temporary folder, with a copy of the replies of models that the node keeps.
"""

import os
import shlex
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import orjson

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder, published_manifest
from dagster_dataops.checkpoints.resume.record_condition import Comparison, Literal, Name
from dagster_dataops.configuration import config
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import CallWithheldError, ConfigurationError, TryRefusedError
from dagster_dataops.execution.executor import OperatorExecutor
from dagster_dataops.execution.run_report import RunContext
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.opening import exists
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.models.calls.withheld_calls import WithheldCalls, WithholdingClient
from dagster_dataops.models.dry_run import prices_of, usual_output, with_clients
from dagster_dataops.models.replies.kept_replies import kept_file
from dagster_dataops.models.replies.usage import Usage
from dagster_dataops.operators.definition.operator import Operator, exporting, reconfigured
from dagster_dataops.operators.kinds.kind import Tracing
from dagster_dataops.operators.options.settings import ALLOWED, ExecutionSettings
from dagster_dataops.pipelines.history.changed_lines import cut, text_of_line
from dagster_dataops.pipelines.history.node_folder import node_at
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.pipelines.reporting.changed_records import evenly_chosen
from dagster_dataops.pipelines.reporting.record_changes import changes
from dagster_dataops.pipelines.reporting.word_changes import TextPiece
from dagster_dataops.pipelines.tracing.traced_node import NodeEntry, Ref, TracedNode, lines_of
from dagster_dataops.pipelines.tracing.trail import outcome_of, reasons_of

RECORDS: Final = 200
_SAMPLES: Final = 5
_LINES: Final = 3  # of a record
_LONGEST: Final = 300  # characters of a text
_MARKS: Final = {"cut": ("[-", "-]"), "add": ("{+", "+}")}


@dataclass(frozen=True)
class TriedOutcome:
    """The outcome of a record.

    Attributes:
        outcome: ``kept``, ``split``, ``dropped`` or ``failed``.
        lines: The first 1,000 result lines, each with the name of its output.
        reasons: The reasons for which it was dropped.
        error: Type and message of its exception, if it failed.
        further: The number of result lines after the first 1,000, which are not compared.
    """

    outcome: str
    lines: tuple[tuple[str, bytes], ...] = ()
    reasons: tuple[str, ...] = ()
    error: tuple[str, str] = ("", "")
    further: int = 0

    @property
    def why(self) -> str:
        """The outcome in words, for counts."""
        cause = ", ".join(self.reasons) or self.error[0]
        return f"{self.outcome} ({cause})" if cause else self.outcome


@dataclass(frozen=True)
class TriedRecord:
    """A record whose outcome differs with the present code.

    Attributes:
        number: Its number in the input of the node, from 1.
        before: Its outcome in the published result.
        after: Its outcome with the present code.
    """

    number: int
    before: TriedOutcome
    after: TriedOutcome

    @property
    def change(self) -> str:
        """``changed``, ``new``, or the outcome after it, in words."""
        if self.before.lines and self.after.lines:
            return "changed"
        if self.after.lines:
            return f"new, was {self.before.why}"
        verb = "now" if self.before.lines else f"was {self.before.why}, now"
        return f"{verb} {self.after.why}"

    @override
    def __str__(self) -> str:
        return "\n".join([f"record {self.number:,}: {self.change}", *self._lines()])

    def _lines(self) -> Iterator[str]:
        """Yield the columns that differ, with the words that differ marked."""
        if self.after.error[1] and not self.after.lines:
            yield f"    {self.after.error[1][:_LONGEST]}"
        if len(self.before.lines) != len(self.after.lines):
            for mark, side in (("-", self.before), ("+", self.after)):
                for _, line in side.lines[:_LINES]:
                    yield f"    {mark} {cut(text_of_line(line))}"
            return
        for (_, before), (_, after) in zip(self.before.lines, self.after.lines, strict=True):
            for change in changes(orjson.loads(before), orjson.loads(after)):
                yield f"    {change.column}: {_shown(change.before, change.after)}"


@dataclass(frozen=True)
class WouldCall:
    """What records would have asked models, if calls had been made.

    Attributes:
        records: The number of records that need a call that has no stored reply. Their outcomes
            are not known.
        requests: The number of requests: of each record those until its first reply is needed.
        cost: What they would cost: the tokens of requests by the number of characters, replies of
            the usual length of the node, or a quarter of the longest; ``None`` without a price of
            each model.
        highest: The cost if every reply is as long as it may be.
        unpriced: The models without a price.
    """

    records: int
    requests: int
    cost: float | None
    highest: float | None
    unpriced: tuple[str, ...] = ()

    def text(self, tried: int, records: int) -> str:
        """Return it in words, also for all records."""
        scale = records / max(1, tried)
        text = (
            f"would call a model: {self.records:,} of {tried:,} records, whose outcomes are not "
            f"compared, with {self.requests:,} requests or more"
        )
        if not self.requests:
            return f"would call a model: none of {counted(tried, 'records')}"
        text += f"; all {records:,} records about {round(self.requests * scale):,}"
        if self.cost is None or self.highest is None:
            return f"{text}; the client has no price of {', '.join(self.unpriced)}"
        return f"{text}, for about {self.cost * scale:.4g}, at most {self.highest * scale:.4g}"


@dataclass(frozen=True)
class TriedRecords:
    """The outcomes of some records of a node with its present code.

    Attributes:
        node: The name of the node.
        folder: Its folder.
        tried: The number of records that were tried.
        records: The number of records of its input.
        differing: The records whose outcome differs, in input order.
        counts: The counts of the operator, such as ``calls`` of models and their ``cost``.
        kept_outcomes: Whether the result has the outcomes for ``_reuse_outcomes``.
        would_call: Without calls of models, what would have been asked; else ``None``.
    """

    node: str
    folder: Path
    tried: int
    records: int
    differing: Sequence[TriedRecord]
    counts: Mapping[str, float] = field(default_factory=dict)
    kept_outcomes: bool = False
    would_call: WouldCall | None = None

    @property
    def compared(self) -> int:
        """The number of records whose outcomes are compared."""
        return self.tried - (0 if self.would_call is None else self.would_call.records)

    @cached_property
    def changes(self) -> "Counter[str]":
        """The number of records by their change."""
        return Counter(record.change for record in self.differing)

    @cached_property
    def condition(self) -> str:
        """A condition that all records that differ fulfil; empty if no simple one is known."""
        before = [record.before for record in self.differing]
        if not before:
            return ""
        reasons = set.intersection(*(set(outcome.reasons) for outcome in before))
        errors = {outcome.error[0] for outcome in before}
        if reasons:
            return _equality("drop_reason", min(reasons))
        if len(errors) == 1 and errors != {""}:
            return _equality("error_type", min(errors))
        outcomes = {outcome.outcome for outcome in before}
        return outcomes.pop() if outcomes in ({"dropped"}, {"failed"}) else ""

    @property
    def calls(self) -> str:
        """The calls of models, in words; empty without any."""
        new, stored = (int(self.counts.get(name, 0)) for name in ("calls", "calls_replayed"))
        if self.would_call is not None:
            text = f"model calls: none made, {stored:,} answered by stored replies"
            return f"{text}\n{self.would_call.text(self.tried, self.records)}"
        if not new and not stored:
            return ""
        text = f"model calls: {new:,} made, {stored:,} answered by stored replies"
        if new and self.tried:
            scale = self.records / self.tried
            text += f"; all {self.records:,} records would take about {round(new * scale):,}"
            if cost := self.counts.get("cost", 0.0):
                text += f", for about {cost * scale:.4g} (these cost {cost:.4g})"
        return text

    def to_json(self) -> dict[str, Any]:
        """Return the values that JSON can hold."""
        return {
            "node": self.node,
            "tried": self.tried,
            "records": self.records,
            "differing": len(self.differing),
            "changes": dict(self.changes.most_common()),
            "calls": int(self.counts.get("calls", 0)),
            "calls_replayed": int(self.counts.get("calls_replayed", 0)),
            "cost": self.counts.get("cost", 0.0),
            "would_call": None if self.would_call is None else vars(self.would_call),
            "condition": self.condition,
            "samples": [
                {"record": record.number, "change": record.change}
                for record in self.differing[:_SAMPLES]
            ],
        }

    @override
    def __str__(self) -> str:
        return "\n".join(self._text())

    def _text(self) -> Iterator[str]:
        whole = self.tried == self.records
        spread = "all of them" if whole else "spread evenly, the same each time"
        yield (
            f"{self.node}: the present code was tried on {self.tried:,} of "
            f"{counted(self.records, 'records')} ({spread}); nothing was published"
        )
        share = len(self.differing) / max(1, self.compared)
        yield f"outcomes that differ: {len(self.differing):,} of {self.compared:,} ({share:.1%})"
        yield from (f"    {number:,} {change}" for change, number in self.changes.most_common())
        if self.calls:
            yield self.calls
        yield from map(str, self._samples())
        yield from self._choices()

    def _samples(self) -> list[TriedRecord]:
        """Return the first record of each change, then others."""
        firsts = {record.change: record for record in reversed(self.differing)}
        numbers = {record.number for record in firsts.values()}
        others = (record for record in self.differing if record.number not in numbers)
        chosen = islice(chain(firsts.values(), others), _SAMPLES)
        return sorted(chosen, key=attrgetter("number"))

    def _choices(self) -> Iterator[str]:
        yield "to keep, redo or choose, launch the node with one of these in its configuration:"
        if self.kept_outcomes:
            yield "    keep all:    resume: across_code"
        else:
            yield "    keep all:    resume: failed_records   (only failed records are called again)"
        yield "    redo all:    resume: never"
        condition = self.condition or "CONDITION"
        yield f"    redo some:   resume: {{records: {orjson.dumps(condition).decode()}}}"
        value = orjson.dumps({"records": condition, "node": self.node}).decode()
        yield f"in plain Python: DATAOPS_DATA_PROCESS_RESUME={shlex.quote(value)} python FILE.py"


def try_pipeline(
    folder: str | os.PathLike[str],
    ppl: Pipeline,
    records: int = RECORDS,
    *,
    node: str = "",
    calls: bool = True,
) -> TriedRecords:
    """Run the present code of a node of a pipeline on records that it has processed before.

    Args:
        folder: The folder of the node, or of one of its partitions.
        ppl: The pipeline with the present code.
        records: The number of records to try.
        node: The name of the node in the pipeline; by default the name of the result.
        calls: Whether models may be called. Without, only stored replies are used, and records
            that need another one are counted.

    Raises:
        ConfigurationError: The pipeline has no such node, or the number is below 1.
        TryRefusedError: The outcomes of single records of the node cannot be compared.
        ResultMissingError: The folder has no result.
        TraceError: Result or input was changed since, or the record of a line is not known.
    """
    place = node_at(folder)
    name = node or place.name
    nodes = ppl.graph.nodes
    if name not in nodes:
        raise ConfigurationError("--node", name, f"a node of the pipeline: {', '.join(nodes)}")
    if nodes[name].artefacts:
        raise TryRefusedError(name, "it reads artefacts of other nodes")
    return try_operator(place, nodes[name].operator, records, calls=calls)


def try_operator(
    folder: NodeFolder,
    operator: Operator,
    records: int = RECORDS,
    clients: Mapping[str, Any] | None = None,
    *,
    calls: bool = True,
) -> TriedRecords:
    """Run an operator on records that a node has processed before, as `try_pipeline` does."""
    clients = config.clients if clients is None else clients
    if records < 1:
        raise ConfigurationError("--records", records, "a whole number of records, 1 or more")
    folder = folder.as_published()
    manifest = published_manifest(folder)
    if manifest is None:
        raise TryRefusedError(folder.name, "its result was edited since it was published")
    kind = operator.__dataops__.spec.kind
    if kind.trace is not Tracing.RECORD or kind.as_a_whole:
        reason = kind.as_a_whole or "its records are not processed one by one"
        raise TryRefusedError(folder.name, reason)
    node = TracedNode(folder, manifest)
    _check_files(node)
    indices = evenly_chosen(manifest.rows_in, records)
    refs = list(map(node.ref_of, indices))
    before = [_entry_of(node, ref) for ref in refs]
    with tempfile.TemporaryDirectory(prefix="dataops-try-") as scratch:
        source = Path(scratch) / "records.jsonl"
        inputs = lines_of(refs)
        lines = [inputs[ref].text.rstrip(b"\n") + b"\n" for ref in refs]
        source.write_bytes(b"".join(lines))
        withheld = WithheldCalls()
        after, counts = _run(operator, folder, source, clients, None if calls else withheld)
        entries = [_entry_of(after, Ref(source, at)) for at in range(len(refs))]
        sides = [_outcomes(before), _outcomes(entries)]
    unknown = _unknown(withheld, lines, sides[1])
    differing = [
        TriedRecord(index + 1, *pair)
        for at, (index, *pair) in enumerate(zip(indices, *sides, strict=True))
        if pair[0] != pair[1] and at not in unknown
    ]
    return TriedRecords(
        node=folder.name,
        folder=folder.path,
        tried=len(refs),
        records=manifest.rows_in,
        differing=differing,
        counts=counts,
        kept_outcomes=manifest.outcomes,
        would_call=(
            None if calls else _would_call(withheld, len(unknown), operator, manifest, clients)
        ),
    )


def _unknown(
    withheld: WithheldCalls, lines: Sequence[bytes], outcomes: Sequence[TriedOutcome]
) -> set[int]:
    """Return which records needed a call, also those whose operator went on without it."""
    starts = accumulate(map(len, lines), initial=0)
    return {
        at
        for at, (start, outcome) in enumerate(zip(starts, outcomes, strict=False))
        if start in withheld.positions or outcome.error[0] == CallWithheldError.__name__
    }


def _would_call(
    withheld: WithheldCalls,
    records: int,
    operator: Operator,
    manifest: Manifest,
    clients: Mapping[str, Any],
) -> WouldCall:
    requests = sum(calls.requests for calls in withheld.by_model.values())
    prices = prices_of(operator, clients)
    unpriced = tuple(model for model in withheld.by_model if model not in prices)
    if unpriced:
        return WouldCall(records, requests, None, None, unpriced)
    cost = highest = 0.0
    for model, calls in withheld.by_model.items():
        usual = usual_output(manifest, calls.requests, calls.tokens_out)
        usages = [
            Usage(tokens_in=round(calls.tokens_in), tokens_out=round(out))
            for out in (usual, calls.tokens_out)
        ]
        least, most = map(prices[model].cost, usages)
        cost, highest = cost + least, highest + most
    return WouldCall(records, requests, cost, highest)


def _check_files(node: TracedNode) -> None:
    """Check that the node still has its input and its result, unchanged."""
    for source in node.inputs:
        if not exists(source.path):
            reason = f"its input {source.path} is gone, such as the records of a call in Python"
            raise TryRefusedError(node.name, reason)
        node.check_input(source.path)
    for result in node.results.values():
        node.check_result(result)


def _entry_of(node: TracedNode, ref: Ref) -> NodeEntry:
    """Return the outcome of a record; refuse one that became lines together with others."""
    (entry, *_) = node.entries_of_record(ref) or [NodeEntry([ref], (), {"emitted": 0})]
    if len(entry.given) > 1:
        reason = "batches of its records become lines together, and other batches would be made"
        raise TryRefusedError(node.name, reason)
    return entry


def _run(
    operator: Operator,
    folder: NodeFolder,
    source: Path,
    clients: Mapping[str, Any],
    withheld: WithheldCalls | None,
) -> tuple[TracedNode, Mapping[str, float]]:
    """Run the operator over a file, in a folder beside it; return its node there and its counts."""
    root = source.parent
    place = NodeFolder.of(Root(root) / ".try", folder.name)
    place.path.mkdir()
    shutil.copyfile(folder.manifest, place.manifest)  # stored replies are those of its result
    replies = kept_file(folder.path)
    if replies is not None:
        target = place.path / replies.relative_to(folder.path)
        target.parent.mkdir(parents=True)
        shutil.copyfile(replies, target)
    settings = ExecutionSettings(
        stop_after_failures=0, missing=ALLOWED, trace=True, reuse_outcomes=False, keep_versions=0
    )
    tried = reconfigured(exporting(operator, None), {}, settings)
    if withheld is not None:
        # In this process, where the clients keep the requests.
        mode = "async" if operator.__dataops__.spec.asynchronous else "single"
        tried = reconfigured(tried, {}, ExecutionSettings(concurrency_mode=mode))
        tried = with_clients(
            tried, clients, lambda client: WithholdingClient.instead_of(client, withheld)
        )
    context = RunContext(run="try", root=root, clients=clients)
    report = OperatorExecutor(context).run(tried, [JsonlDataset.of_file(source)], place)
    counts = report.manifest.counts.items()
    numbers = {name: float(n) for name, n in counts if isinstance(n, (int, float))}
    return TracedNode(place, report.manifest), numbers


def _outcomes(entries: Sequence[NodeEntry]) -> list[TriedOutcome]:
    texts = lines_of(ref for entry in entries for ref, _ in entry.made)
    return [
        TriedOutcome(
            outcome_of(entry.fields, 1, len(entry.made)),
            tuple((output, texts[ref].text.rstrip(b"\n")) for ref, output in entry.made),
            tuple(reasons_of(entry.fields)),
            _error_of(entry.error),
            entry.left_out,
        )
        for entry in entries
    ]


def _error_of(row: Mapping[str, Any] | None) -> tuple[str, str]:
    return ("", "") if row is None else (str(row.get("exception")), str(row.get("message")))


def _shown(before: Sequence[TextPiece] | None, after: Sequence[TextPiece] | None) -> str:
    """Return one text for both sides, with marks around removed and added words."""
    if before is None or after is None:
        return _pieces(before or after or ())
    return f"{_pieces(before)} -> {_pieces(after)}"


def _pieces(pieces: Sequence[TextPiece]) -> str:
    texts = []
    for piece in pieces:
        begin, end = _MARKS.get(piece.mark, ("", ""))
        text = piece.text.replace("\n", "\\n")
        texts.append(f"{begin}{text}{end}")
    shown = "".join(texts)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _equality(fact: str, value: str) -> str:
    return str(Comparison(Name("", (fact,)), "==", Literal(value)))
