"""Every error that this package raises, as one tree.

 DataOpsError
 |-- DefinitionError              a definition is invalid; raised before anything runs
 |   |-- OperatorDefinitionError      a function or class is not a valid operator
 |   |-- OperatorOptionError          an option is unknown or invalid
 |   |-- DuplicateOperatorError       two places register the same name
 |   |-- ConfigurationError           a setting has an invalid value
 |   |-- UnknownOperatorError         a group or operator is not registered
 |   |-- ChainDefinitionError         operators cannot be made one chain
 |   |-- PipelineDefinitionError      cycles, unknown inputs, duplicate names
 |   |-- DefsYamlError                a defs.yaml is invalid
 |   |-- SelectorSyntaxError          a selector is malformed; also a ValueError
 |   `-- StreamDefinitionError        a stage of a stream is invalid; also a ValueError
 |       `-- StreamArgumentError          an argument has the wrong type; also a TypeError
 |-- InputError                   the input cannot be read
 |-- MissingColumnError           a selected element is missing; also a ValueError
 |-- SelectedElementError         a function failed on an element; also a RuntimeError
 |-- DataPipelineError            a stream cannot continue; also a RuntimeError
 |   |-- StreamItemError              an item is not a valid record
 |   `-- StreamSourceError            the source cannot be read; also an InputError
 |-- StreamStateError             a state does not belong to the stream; also a ValueError
 |-- UnencodableError             JSON cannot hold a value
 |-- OperatorError                an operator failed
 |   |-- RecordError                  on one record
 |   |-- OutageError                  on every record, or on many in a row
 |   |-- DatasetOperatorError         on the whole dataset
 |   `-- PartitionsFailedError        on some partitions of a run over several
 |-- OperatorOpenError            open() or close() of an operator failed
 |-- OperatorContextError         an operator asked its context for something that is not there
 |-- StorageError                 a file operation failed
 |-- FolderLockedError            another run is using the folder
 |-- ResultMissingError           a result was never published, or is damaged
 |-- RetryRefusedError            failed records cannot be retried alone
 |   `-- RetryOutdatedError           because the input has changed
 |-- WorkerError                  worker processes cannot start
 |-- RunStoppedError              a stop was requested; finished records are kept
 `-- MissingExtraError            an optional package is not installed

Errors cross process boundaries. So each stores its facts as constructor arguments and builds its
message in ``__str__``; a pickled copy equals the original.
"""

from typing import ClassVar

from typing_extensions import override


class DataOpsError(Exception):
    """The base class: named facts, and a sentence made from them.

    The annotations of a subclass name its facts, in order.
    """

    facts: ClassVar[tuple[str, ...]] = ("reason",)
    sentence: ClassVar[str] = "{reason}"

    @override
    def __init_subclass__(cls) -> None:
        """Take the annotations as the facts; without any, those of the base class."""
        super().__init_subclass__()
        if cls.__annotations__:
            cls.facts = tuple(cls.__annotations__)

    def __init__(self, *values: object) -> None:
        super().__init__(*values)
        for name, value in zip(self.facts, values, strict=True):
            setattr(self, name, value)

    @override
    def __str__(self) -> str:
        return self.sentence.format(**{name: getattr(self, name) for name in self.facts})


class DefinitionError(DataOpsError):
    """A definition is invalid. Nothing has been read, written or changed."""


class OperatorDefinitionError(DefinitionError):
    """A function or class cannot be registered as an operator."""

    sentence = "{operator} cannot be registered as an operator: {reason}"
    operator: str
    reason: str


class OperatorOptionError(DefinitionError):
    """An operator was constructed with an unknown or invalid option."""

    sentence = "Operator {operator}: option {option!r} {reason}"
    operator: str
    option: str
    reason: str


class DuplicateOperatorError(DefinitionError):
    """Two different places register the same operator name."""

    sentence = (
        "Operator {operator} is already registered from {registered}; the registration from "
        "{refused} is rejected. Rename one of them, or put it into another group."
    )
    operator: str
    registered: str
    refused: str


class ConfigurationError(DefinitionError):
    """A setting has an invalid value."""

    sentence = "Setting {setting} is {found!r}; it must be {allowed}"
    setting: str
    found: object
    allowed: str


class UnknownOperatorError(DefinitionError, AttributeError):
    """A requested group or operator is not registered."""

    sentence = "{wanted} is not registered. Registered: {known}"
    wanted: str
    known: str


class PipelineDefinitionError(DefinitionError):
    """The graph of a pipeline is invalid."""

    sentence = "Pipeline {pipeline!r}: {reason}"
    pipeline: str
    reason: str


class ChainDefinitionError(DefinitionError):
    """Operators cannot be made one chain."""

    sentence = "Chain {chain!r}: {reason}"
    chain: str
    reason: str


class DefsYamlError(DefinitionError):
    """A defs.yaml is invalid."""

    sentence = "{place}, {subject}: {reason}\n{excerpt}"
    place: str
    subject: str
    reason: str
    excerpt: str


class InputError(DataOpsError):
    """The input as a whole cannot be used."""

    sentence = "Input {source}: {reason}"
    source: str
    reason: str


class UnencodableError(DataOpsError):
    """A value cannot be written as JSON."""

    sentence = "{path} {reason}"
    path: str
    reason: str


class OperatorError(DataOpsError):
    """An operator failed."""


class RecordError(OperatorError):
    """An operator failed on one record.

    Attributes:
        operator: The qualified name, such as ``demo.process_uppercase``.
        index: The position of the record in the input, counted from 0.
        path: The input file.
        line: The line of the record in ``path``, counted from 1.
        exception: The class name of the exception.
        message: The text of the exception.
        traceback_text: The traceback inside the operator.
    """

    sentence = (
        "Operator {operator} failed on record {index} ({path}, line {line}): "
        "{exception}: {message}\n{traceback_text}"
        "Finished records are kept. Fix the operator or the record and run again, or set "
        "_ignore_errors=True to collect such records in the error file."
    )
    operator: str
    index: int
    path: str
    line: int
    exception: str
    message: str
    traceback_text: str


class OutageError(OperatorError):
    """An operator failed on every record, or on many records in a row. Nothing was published.

    Attributes:
        operator: The qualified name, such as ``demo.process_uppercase``.
        found: A clause that describes the failed calls.
        example: One failure: the exception, its text and its traceback.
    """

    sentence = (
        "Operator {operator} stopped: {found}. Nothing was published; an earlier result is kept.\n"
        "{example}\n"
        "Finished records are kept; failed records will be processed again. Fix the cause and run "
        "again to continue (in Dagster re-execute or materialize, in plain Python with "
        "config.data_process_resume = True). If the records are the cause, set "
        "_stop_after_failures to a larger number, or to 0 to never stop and to publish even a "
        "result whose records all failed (`stop_after_failures` in YAML and in the launchpad)."
    )
    operator: str
    found: str
    example: str


class DatasetOperatorError(OperatorError):
    """A dataset operator failed; its previous result, if any, is unchanged."""

    sentence = "Operator {operator} failed on its dataset: {reason}\n{traceback_text}"
    operator: str
    reason: str
    traceback_text: str


class PartitionsFailedError(OperatorError):
    """Some partitions of a run over several failed; the others are materialized."""

    sentence = (
        "{asset}: {failed:,} of {total:,} partitions failed: {reasons}. The others are "
        "materialized; fix the cause and launch the failed ones again."
    )
    asset: str
    failed: int
    total: int
    reasons: str


class StorageError(DataOpsError):
    """Reading or writing a file failed."""

    sentence = (
        "{path}: cannot {action}: {reason}. Records finished so far are kept; "
        "fix the cause and run again to continue."
    )
    path: str
    action: str
    reason: str


class FolderLockedError(DataOpsError):
    """Another run is using this folder."""

    sentence = (
        "Folder {folder} is in use by {holder}; waited {waited_seconds:.1f} s. "
        "Wait until that run ends or stop it, then run again."
    )
    folder: str
    holder: str
    waited_seconds: float


class ResultMissingError(DataOpsError):
    """A published result does not exist."""

    sentence = "No result at {path}: {reason}. Materialize the operator that writes it first."
    path: str
    reason: str


class RetryRefusedError(DataOpsError):
    """The failed records of a result cannot be retried alone; the result is unchanged."""

    sentence = (
        "The failed records of {path} cannot be retried alone: {reason}. Run the operator over "
        "all records: resume `auto` or `never` in the launchpad, in plain Python "
        "data_process_resume=False."
    )
    path: str
    reason: str


class RetryOutdatedError(RetryRefusedError):
    """The failed records of a result no longer match its input, which has changed."""


class WorkerError(DataOpsError):
    """Worker processes cannot be started or kept alive."""

    sentence = "Operator {operator}: worker processes cannot run it: {reason}"
    operator: str
    reason: str


class OperatorOpenError(DataOpsError):
    """``open()`` or ``close()`` of an operator failed. No record is at fault."""

    sentence = "Operator {operator}: its {method}() failed: {reason}\n{traceback_text}"
    operator: str
    method: str
    reason: str
    traceback_text: str


class OperatorContextError(DataOpsError):
    """An operator asked its context for something that is not there."""

    sentence = "context.{wanted} {reason}"
    wanted: str
    reason: str


class RunStoppedError(DataOpsError):
    """The run was asked to stop. Finished records are kept and will not be processed again."""

    sentence = "Operator {operator} stopped: {reason}. Finished records are kept."
    operator: str
    reason: str


class MissingExtraError(DataOpsError):
    """A feature needs a package that is not installed."""

    sentence = "{feature} needs an optional package: pip install 'dagster-dataops[{extra}]'"
    feature: str
    extra: str


class SelectorSyntaxError(DefinitionError, ValueError):
    """A column selector is malformed.

    Attributes:
        selector: The selector.
        column: The position of the fault, counted from 1.
        reason: The fault.
    """

    sentence = "Selector {selector!r} is malformed at column {column}: {reason}"
    selector: str
    column: int
    reason: str

    @override
    def __str__(self) -> str:
        shown = "".join(" " if one.isspace() else one for one in self.selector)
        return f"{super().__str__()}\n  {shown}\n  {' ' * (self.column - 1)}^"


class MissingColumnError(DataOpsError, ValueError):
    """A selector selects an element that the record does not have; nothing was changed."""

    sentence = "The record has no element at path {path!r}: {found}"
    path: str
    found: str


class SelectedElementError(DataOpsError, RuntimeError):
    """A function failed on a selected element; its exception is the cause."""

    sentence = "The function failed on the element at path {path!r}: {exception}: {message}"
    path: str
    exception: str
    message: str


class StreamDefinitionError(DefinitionError, ValueError):
    """A stage of a stream has an invalid argument."""

    sentence = "Stream stage {stage}: {reason}"
    stage: str
    reason: str


class StreamArgumentError(StreamDefinitionError, TypeError):
    """A stage of a stream has an argument of the wrong type."""


class DataPipelineError(DataOpsError, RuntimeError):
    """A stream cannot continue."""


class StreamSourceError(DataPipelineError, InputError):
    """The source of a stream cannot be read."""


class StreamItemError(DataPipelineError):
    """An item of a stream cannot be written, because it is not a valid record."""

    sentence = "Stream {stream}: item {index:,} {reason}"
    stream: str
    index: int
    reason: str


class StreamStateError(DataOpsError, ValueError):
    """A state cannot be taken, or does not belong to this stream."""

    sentence = "Stream state: {reason}"
    reason: str
