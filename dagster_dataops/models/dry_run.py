"""`dry_run`: estimate the cost of a pipeline's calls of models. No model is called."""

import copy
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.configuration import config
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.lines import count_records, opened_content
from dagster_dataops.datasets.record_samples import spread_sample
from dagster_dataops.models.calls.client import ModelClient
from dagster_dataops.models.model_operator import ModelOperator, client_among
from dagster_dataops.models.placeholder import Placeholder
from dagster_dataops.models.replies.prices import Price
from dagster_dataops.models.replies.usage import Usage
from dagster_dataops.operators.chains.chain import Chain
from dagster_dataops.operators.definition.operator import Operator, exporting
from dagster_dataops.pipelines.graph.graph import OperatorGraph
from dagster_dataops.pipelines.graph.operator_node import OperatorNode
from dagster_dataops.pipelines.local_run import as_dataset, materialize
from dagster_dataops.pipelines.pipeline import Pipeline

_SAMPLE: Final = 200
_USUAL_SHARE: Final = 0.25  # of the longest reply, where no earlier run tells


@dataclass(frozen=True)
class NumberRange:
    """A number that is not known exactly.

    Attributes:
        expected: The likely value.
        high: The value if every reply is as long as it may be.
    """

    expected: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """Estimated numbers and costs of the calls of a node.

    Attributes:
        calls: Number of calls.
        tokens_in: Tokens of the requests.
        tokens_out: Tokens of the replies.
        cost: Cost, by the prices of the client; 0 without prices.
    """

    calls: int
    tokens_in: int
    tokens_out: NumberRange
    cost: NumberRange


def dry_run(ppl: Pipeline, data: object, *, sample: int = _SAMPLE) -> dict[str, Estimate]:
    """Estimate the cost of a pipeline's calls of models. No model is called.

    The pipeline runs over a sample of the records in a temporary folder, with replies that only
    have the right form, each as long as ``max_tokens`` allows (1,000 tokens without a limit). The
    tokens of requests are estimated by the number of characters. The expected length of replies
    is that of the last result of the node, or else a quarter of the longest.

    Args:
        ppl: The pipeline.
        data: The records, as for a call of the pipeline, but not a stream.
        sample: Number of records.

    Returns:
        The estimates by the name of each node that calls models.
    """
    saved = config.results_root() / ppl.graph.name
    return estimates_of(
        ppl.graph, data, sample, config.clients, lambda name: NodeFolder.of(saved / name)
    )


def estimates_of(
    graph: OperatorGraph,
    data: object,
    sample: int,
    clients: Mapping[str, Any],
    folder_of: Callable[[str], NodeFolder],
) -> dict[str, Estimate]:
    """Return the estimates of the nodes that call models, see `dry_run`.

    Clients by name have the prices. ``folder_of`` returns the folder of a node, which may have a
    result.
    """
    with tempfile.TemporaryDirectory(prefix="dataops-") as scratch:
        folder = Path(scratch)
        source = as_dataset(data, folder / "given.jsonl")
        records = spread_sample(source, sample).records
        dry = OperatorGraph.of(graph.name, _dry_nodes(graph, clients))
        with config.temporary(data_process_path=folder / "results", data_process_resume=False):
            reports = materialize(dry, records, scratch=folder)
        scale = _rows_of(source) / max(1, len(records))
        return {
            name: _estimate(
                report.manifest,
                scale,
                folder_of(name),
                _price_of(graph.nodes[name].operator, clients),
            )
            for name, report in reports.items()
            if "calls" in report.manifest.counts
        }


def _dry_nodes(graph: OperatorGraph, clients: Mapping[str, Any]) -> Iterator[OperatorNode]:
    """Yield the nodes, without calls of models and without files outside of their folders."""

    def placeholder(client: ModelClient) -> ModelClient:
        return ModelClient(complete=Placeholder(client.media_tokens), prices=client.prices)

    for node in graph.ordered():
        if not node.operator.__dataops__.spec.kind.exports:
            dry = with_clients(node.operator, clients, placeholder)
            yield OperatorNode(node.name, exporting(dry, None), node.inputs)


def with_clients(
    operator: Operator,
    clients: Mapping[str, Any],
    other: Callable[[ModelClient], ModelClient],
) -> Operator:
    """Return an operator that asks another client, also each part of a chain.

    ``other`` returns the client to ask instead of one.
    """
    if isinstance(operator, Chain):
        return operator.with_parts(
            [with_clients(part, clients, other) for _, part in operator.parts]
        )
    if not isinstance(operator, ModelOperator):
        return operator
    copied: Any = copy.copy(operator)
    copied.client = other(client_among(operator.client, clients))
    return copied  # type: ignore[no-any-return]


def _estimate(dry: Manifest, scale: float, folder: NodeFolder, price: Price | None) -> Estimate:
    """Return the estimate of a node by a run over a sample, of ``scale`` records for each one."""
    counts = {name: float(number) * scale for name, number in dry.counts.items()}
    tokens_in, most = round(counts.get("tokens_in", 0.0)), counts.get("tokens_out", 0.0)
    expected = most * _share_of_longest(Manifest.of(folder), counts)
    high = counts.get("cost", 0.0)
    saved = 0.0 if price is None else price.cost(Usage(tokens_out=round(most - expected)))
    return Estimate(
        calls=round(counts["calls"]),
        tokens_in=tokens_in,
        tokens_out=NumberRange(expected, most),
        cost=NumberRange(max(0.0, high - saved), high),
    )


def _share_of_longest(last: Manifest | None, counts: Mapping[str, float]) -> float:
    """Return the expected length of replies, as a share of the longest."""
    if last is None or not last.counts.get("calls") or not counts.get("tokens_out"):
        return _USUAL_SHARE
    mean = float(last.counts.get("tokens_out", 0)) / last.counts["calls"]
    share: float = mean * counts["calls"] / counts["tokens_out"]
    return min(1.0, share)


def usual_output(last: Manifest | None, calls: float, most: float) -> float:
    """Return about how many tokens replies have: as those of the last result of a node.

    ``most`` are the tokens of all replies, if each is as long as it may be.
    """
    return most * _share_of_longest(last, {"calls": calls, "tokens_out": most})


def calls_models(graph: OperatorGraph) -> bool:
    """Return whether any node calls models."""
    return any(_model_parts(node.operator) for node in graph.nodes.values())


def _model_parts(operator: Operator) -> list[ModelOperator]:
    """Return the parts of an operator that call models."""
    parts = [part for _, part in operator.__dataops__.spec.parts] or [operator]
    return [part for part in parts if isinstance(part, ModelOperator)]


def _price_of(operator: Operator, clients: Mapping[str, Any]) -> Price | None:
    """Return the price of the model of an operator; of a chain, of its first model."""
    for part in _model_parts(operator):
        return client_among(part.client, clients).prices.get(part.model)
    return None


def prices_of(operator: Operator, clients: Mapping[str, Any]) -> dict[str, Price]:
    """Return the prices of the clients of an operator and of its parts, by model."""
    return {
        model: price
        for part in _model_parts(operator)
        for model, price in client_among(part.client, clients).prices.items()
    }


def _rows_of(dataset: JsonlDataset) -> int:
    if dataset.rows is not None:
        return dataset.rows
    with opened_content(dataset.location) as (source, interval):
        return count_records(source, interval)
