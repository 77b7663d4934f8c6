"""Runner: runs the operators of one kind.

`OperatorKind.runner` names the class that runs the operators of a kind.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.checkpoints.publish.drafts import Drafts
from dagster_dataops.checkpoints.resume.start_decision import ResumableStream
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.execution.node_attempt import NodeAttempt
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.definition.spec import OperatorSpec
from dagster_dataops.operators.kinds.kind import Inputs


class Runner(Protocol):
    """Runs the operators of one kind.

    Attributes:
        fingerprint: The operator, options, code and input of the result.
        records: The input whose records are settled one by one; ``None`` for other kinds.
        stream: The stream that is written; ``None`` for other kinds.
    """

    fingerprint: RunFingerprint
    records: JsonlDataset | None = None
    stream: ResumableStream | None = None

    def complete(self, attempt: NodeAttempt) -> bool:  # noqa: ARG002 - subclasses use it
        """Return whether the files outside the node's folder are there and unchanged."""
        return True

    def run(self, attempt: NodeAttempt) -> Drafts:
        """Process the records without an outcome, and return the drafts of the result."""


def make_runner(operator: Operator, inputs: Sequence[JsonlDataset]) -> Runner:
    """Return the runner of an operator; only its module is imported."""
    module, _, name = operator.__dataops__.spec.kind.runner.partition(":")
    runner: Runner = getattr(import_module(module), name)(operator, inputs)
    return runner


def takes_separately(spec: OperatorSpec, count: int) -> bool:
    """Return whether an operator takes ``count`` inputs one by one; else they are concatenated."""
    kind = spec.kind
    return kind.takes_streams or (kind.inputs is not Inputs.RECORDS and spec.inputs == count)
