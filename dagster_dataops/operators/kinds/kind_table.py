"""The table of kinds. A new kind is a line here, or a call of `register_kind`, and its runner."""

from typing import Final

from dagster_dataops.errors import DefinitionError
from dagster_dataops.operators.kinds.class_methods import check_selection
from dagster_dataops.operators.kinds.kind import Inputs, OperatorKind, RecordOrigin, Result, Tracing

_RUNNERS: Final = "dagster_dataops.execution.runners."
_ONE_BY_ONE: Final = (
    "and a chain takes one record after the other; make it a node of its own, between two chains"
)

RECORD: Final = OperatorKind(
    name="record",
    method="forward",
    batch_methods=("forward_batch", "forward_window"),
    window_method="forward_window",
    of_functions=True,
    precedence=0,
    takes="one record (a dict), or a batch of them (a list of dicts)",
    inputs=Inputs.RECORDS,
    runner=f"{_RUNNERS}record_runner:RecordRunner",
    by_record=True,
    returns_outcome=True,
    usual=True,
    agents=True,
    origin=RecordOrigin.EACH,
    trace=Tracing.RECORD,
    chained=True,
)
DATASET: Final = OperatorKind(
    name="dataset",
    method="forward_batch_input",
    of_functions=True,
    precedence=0,
    takes="the records (a list of dicts)",
    inputs=Inputs.DATASETS,
    runner=f"{_RUNNERS}dataset_runner:DatasetRunner",
    may_sum_up=True,
    as_a_whole="a dataset operator takes all records at once",
)
SELECTION: Final = OperatorKind(
    name="selection",
    method="sketch",
    further_methods=("keep",),
    batch_methods=("sketch_batch",),
    precedence=0,
    takes="one record (sketch) or the sketches (keep)",
    inputs=Inputs.RECORDS,
    check=check_selection,
    runner=f"{_RUNNERS}selection_runner:SelectionRunner",
    by_record=True,
    recorded_as="sketch",
    agents=True,
    origin=RecordOrigin.SAME,
    trace=Tracing.RECORD,
    as_a_whole="a selection operator decides over all records at once",
    not_chained="is a selection, which decides when it has seen all records of the part before it, "
    + _ONE_BY_ONE,
)
STREAM: Final = OperatorKind(
    name="stream",
    method="stream",
    takes="a stream",
    inputs=Inputs.STREAMS,
    runner=f"{_RUNNERS}stream_runner:StreamRunner",
    origin=RecordOrigin.MIXED,
    trace=Tracing.POSITION,
    as_a_whole="a stream is read as a whole; its failed items are not records of an input",
    not_chained=f"is a stream operator, which takes whole inputs, {_ONE_BY_ONE}",
)
ARTEFACT: Final = OperatorKind(
    name="artefact",
    method="build",
    takes="the records (an iterator of dicts)",
    inputs=Inputs.ITERATORS,
    path_parameter="folder",
    runner=f"{_RUNNERS}artefact_runner:ArtefactRunner",
    result=Result.FOLDER,
    as_a_whole="an artefact is built from all records at once",
    not_chained="builds an artefact, which needs all records of the part before it, " + _ONE_BY_ONE,
    always_saved="an artefact is used by others and must be saved",
    not_exported="exports records; copy the folder of the artefact instead",
)
EXPORT: Final = OperatorKind(
    name="export",
    method="write",
    precedence=2,
    takes="the records",
    inputs=Inputs.ITERATORS,
    path_parameter="place",
    one_input=True,
    runner=f"{_RUNNERS}export_runner:ExportRunner",
    result=Result.EXPORT,
    as_a_whole="an export is written from all records at once",
    not_chained="exports the records of the part before it, and a part of a chain has no result; "
    "make it a node after the chain",
    always_saved="the result of an export lists its files, and tells whether they are current",
    not_exported="is for other operators; {option!r} is the path of the export",
)
READER: Final = OperatorKind(
    name="reader",
    method="stream",
    of_functions=True,
    inputs=Inputs.SOURCE,
    runner=f"{_RUNNERS}record_runner:RecordRunner",
    not_chained="is a reader, which takes no records; give it as the source of the pipeline",
)

_TABLE: Final[dict[str, OperatorKind]] = {
    kind.name: kind for kind in (RECORD, DATASET, SELECTION, STREAM, ARTEFACT, EXPORT, READER)
}


def register_kind(kind: OperatorKind) -> OperatorKind:
    """Add a kind to the table; return it.

    Workers and code locations know it after they have imported the module that registers it, as
    they import the modules of operators. Adding the same description again changes nothing.

    Args:
        kind: Its runner is a subclass of `Runner`.

    Raises:
        DefinitionError: The name or a method belongs to another kind, or the runner is not
            written as ``module:name``.
    """
    before = _TABLE.get(kind.name)
    if before == kind:
        return before
    if before is not None:
        raise _refused(kind, f"there is another one of this name, with {before.method}()")
    if not kind.name.isidentifier() or not kind.name.isascii():
        raise _refused(kind, "its name is not a plain identifier")
    for method in {method for way in kind.ways for method in way}:
        owner = next((kind for kind in classes() for way in kind.ways if method in way), None)
        if owner is not None:
            raise _refused(kind, f"its method {method} makes {owner.noun} operator; name another")
    if not all(kind.runner.partition(":")):
        raise _refused(kind, f"its runner is {kind.runner!r}; write 'module:name'")
    _TABLE[kind.name] = kind
    return kind


def _refused(kind: OperatorKind, reason: str) -> DefinitionError:
    return DefinitionError(f"kind {kind.name!r} of operators cannot be registered: {reason}")


def kinds() -> tuple[OperatorKind, ...]:
    """Return all kinds."""
    return tuple(_TABLE.values())


def classes() -> tuple[OperatorKind, ...]:
    """Return the kinds that a class is of by its methods; readers are known by their base."""
    return tuple(kind for kind in _TABLE.values() if not kind.reads_source)


def kind_named(name: str) -> OperatorKind:
    """Return the kind of a name, as it stands in a manifest.

    Args:
        name: The name. Manifests of other versions or programs may name a kind that is not in the
            table; the result is then a kind of records of which nothing is known.
    """
    return _TABLE.get(name) or OperatorKind(
        name=name,
        method="",
        inputs=Inputs.DATASETS,
        runner="",
        as_a_whole=f"nothing is known of a {name} operator",
    )


def function_methods() -> dict[str, OperatorKind]:
    """Return the kinds by the methods that a function can implement."""
    return {method: kind for kind in kinds() for method in kind.function_methods}


def methods_first() -> frozenset[str]:
    """Return the methods that decide the kind of a class, whatever else it defines."""
    return frozenset(way[0] for kind in classes() if not kind.precedence for way in kind.ways)


def data_methods() -> tuple[str, ...]:
    """Return the methods that process data, those of batches first."""
    return tuple(dict.fromkeys(way[0] for kind in kinds() for way in kind.ways[::-1]))
