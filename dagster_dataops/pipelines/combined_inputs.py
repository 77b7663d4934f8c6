"""Combined: several results as one input of a node, or as one source of a pipeline."""

from collections.abc import Sequence
from dataclasses import dataclass

from dagster_dataops.errors import DataOpsError, PipelineDefinitionError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.bound_methods import plain_function
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.secrets.hidden_errors import hide_secrets


@dataclass(frozen=True)
class Combined:
    """A stream operator with its inputs; made by the functions of `combine`.

    Attributes:
        operator: The operator.
        inputs: The nodes to combine; for a source, the files and assets.
    """

    operator: Operator
    inputs: tuple[object, ...]

    def nodes(self, pipeline: str, name: str, inputs: object) -> list[str]:
        """Return the names of the nodes to combine; further ``inputs`` must be ``None``.

        Raises:
            PipelineDefinitionError: An input is not a node, or ``inputs`` is given too.
        """
        if inputs is not None:
            reason = f"node {name!r} names its inputs twice; leave `inputs` out"
            raise PipelineDefinitionError(pipeline, reason)
        wrong = next((source for source in self.inputs if not isinstance(source, str)), None)
        if wrong is not None:
            reason = (
                f"node {name!r} combines a {type(wrong).__name__}; inside a pipeline nodes are "
                "combined, as ppl.<name> (files and assets: as the `source` of a pipeline)"
            )
            raise PipelineDefinitionError(pipeline, reason)
        return [str(source) for source in self.inputs]


def check_stream(pipeline: str, name: str, operator: Operator, inputs: int) -> None:
    """Refuse a stream operator with a wrong number of inputs, or with an infinite stream.

    Raises:
        PipelineDefinitionError: The operator is refused.
    """
    from dagster_dataops.execution.runners.given_stream import (
        as_reading,  # import takes 30 ms, and few pipelines need it
    )
    from dagster_dataops.streams.factories import read_sequence

    spec = operator.__dataops__.spec
    if spec.inputs and spec.inputs != inputs:
        wanted = counted(spec.inputs, "inputs")
        reason = f"node {name!r}: {spec.qualified_name} takes {wanted}, not {inputs}"
        raise PipelineDefinitionError(pipeline, reason)
    empty = [read_sequence([]) for _ in range(inputs)]
    try:
        as_reading(plain_function(operator)(*empty), name)
    except (DataOpsError, TypeError, ValueError) as error:
        hide_secrets(error, operator.__dataops__.secrets)
        reason = f"node {name!r}: {spec.qualified_name} over {counted(inputs, 'inputs')}: {error}"
        raise PipelineDefinitionError(pipeline, reason) from error
    except Exception as error:
        hide_secrets(error, operator.__dataops__.secrets)
        raise


def listed(inputs: object) -> tuple[object, ...]:
    """Return the inputs to combine.

    Raises:
        PipelineDefinitionError: The list is empty, or it is not a list.
    """
    if isinstance(inputs, (str, bytes)) or not isinstance(inputs, Sequence) or not inputs:
        reason = f"combines a list of results, at least one; got {inputs!r}"
        raise PipelineDefinitionError("combine", reason)
    return tuple(inputs)
