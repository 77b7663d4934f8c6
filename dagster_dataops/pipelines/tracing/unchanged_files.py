"""Check that no file behind a result is published or changed while several of them are read."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dagster_dataops.errors import InputError, TraceOutdatedError
from dagster_dataops.foundation.places.bucket import Location, StoreBucket
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.opening import state_at
from dagster_dataops.pipelines.tracing.traced_node import TracedNode


@contextmanager
def unchanged(
    results: Iterable[Path], bucket: StoreBucket | None, *, nodes_before: bool = True
) -> Iterator[None]:
    """Check that all files behind results stay as they are inside the block.

    With ``nodes_before``, the files of all nodes before them count, not only their inputs.

    Raises:
        TraceOutdatedError: One was published or changed meanwhile, even if the block has failed.
    """
    paths = list(results)
    before = _states_behind(paths, bucket, nodes_before=nodes_before)
    try:
        yield
    finally:
        now = _states_behind(paths, bucket, nodes_before=nodes_before)
        for path in [
            changed for changed in before | now if before.get(changed) != now.get(changed)
        ]:
            reason = "it was published or changed while it was read; try again"
            raise TraceOutdatedError(str(path), reason)


def _states_behind(
    results: list[Path], bucket: StoreBucket | None, *, nodes_before: bool
) -> dict[Location, FileState | None]:
    """Return the states of all files of nodes and sources; ``None`` for a missing one."""
    states: dict[Location, FileState | None] = {}
    waiting: list[Location] = list(results)
    while waiting:
        result = waiting.pop()
        if result in states:
            continue
        traced = nodes_before or result in results
        node = TracedNode.of_result(result, bucket) if traced else None
        states |= {path: _state_of(path) for path in {result, *(node.files if node else ())}}
        waiting += [source.path for source in node.inputs] if node else []
    return states


def _state_of(path: Location) -> FileState | None:
    try:
        return state_at(path)._replace(changed_ns=0)  # of the last link or permission
    except (OSError, InputError):
        return None
