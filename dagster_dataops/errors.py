"""Every error this package raises, as one tree.

    DataOpsError
    |-- DefinitionError              what you wrote cannot work; raised before anything runs
    |   |-- OperatorDefinitionError      a function or class that is no operator
    |   |-- OperatorOptionError          an option that the operator does not take
    |   |-- DuplicateOperatorError       one name registered from two places
    |   |-- ConfigurationError           a setting with an impossible value
    |   |-- UnknownOperatorError         a group or operator nobody registered
    |   |-- PipelineDefinitionError      cycles, unknown inputs, duplicate names
    |   |-- DefsYamlError                what a defs.yaml says cannot work
    |   |-- SelectorSyntaxError          a malformed selector; a ValueError, too
    |   `-- StreamDefinitionError        a stage of a stream cannot work so; a ValueError, too
    |       `-- StreamArgumentError          an argument of the wrong type; a TypeError, too
    |-- InputError                   the input cannot be read
    |-- MissingColumnError           a selected element is not there; a ValueError, too
    |-- SelectedElementError         a function failed on an element; a RuntimeError, too
    |-- DataPipelineError            a stream cannot go on; a RuntimeError, too
    |   |-- StreamItemError              an item is no record that a jsonl file could hold
    |   `-- StreamSourceError            its source cannot be read; an InputError, too
    |-- StreamStateError             a position that is none of this stream; a ValueError, too
    |-- UnencodableError             a value that a jsonl file cannot hold
    |-- OperatorError                an operator failed
    |   |-- RecordError                  on one record
    |   |-- OutageError                  on every record, or on one after another
    |   |-- DatasetOperatorError         on the whole dataset
    |   `-- PartitionsFailedError        on some partitions of a run of several
    |-- StorageError                 the disk refused
    |-- FolderLockedError            another run works in this folder
    |-- ResultMissingError           a result that was never published, or is damaged
    |-- RetryRefusedError            failed records cannot be retried alone
    |   `-- RetryOutdatedError           because the input is another now
    |-- WorkerError                  worker processes cannot start
    |-- RunStoppedError              told to stop; what was finished is settled
    `-- MissingExtraError            an optional package is not installed

Errors cross process boundaries, so each keeps its facts as constructor arguments and builds its
sentence in ``__str__``: a pickled copy equals the original.
"""

from typing import ClassVar

from typing_extensions import override


class DataOpsError(Exception):
    """The root: an error with named facts and a sentence made of them."""

    facts: ClassVar[tuple[str, ...]] = ("reason",)
    sentence: ClassVar[str] = "{reason}"

    def __init__(self, *values: object) -> None:
        super().__init__(*values)
        for name, value in zip(self.facts, values, strict=True):
            setattr(self, name, value)

    @override
    def __str__(self) -> str:
        return self.sentence.format(**{name: getattr(self, name) for name in self.facts})


class DefinitionError(DataOpsError):
    """What was written down cannot work. Nothing has been read, written or changed."""


class OperatorDefinitionError(DefinitionError):
    """A function or class cannot be registered as an operator."""

    facts = ("operator", "reason")
    sentence = "{operator} cannot be registered as an operator: {reason}"
    operator: str
    reason: str


class OperatorOptionError(DefinitionError):
    """An operator was constructed with an option that it does not take."""

    facts = ("operator", "option", "reason")
    sentence = "Operator {operator}: option {option!r} {reason}"
    operator: str
    option: str
    reason: str


class DuplicateOperatorError(DefinitionError):
    """Two different places register one operator name."""

    facts = ("operator", "registered", "refused")
    sentence = (
        "Operator {operator} is already registered from {registered}; the registration from "
        "{refused} is refused. Rename one of them, or put it into another group."
    )
    operator: str
    registered: str
    refused: str


class ConfigurationError(DefinitionError):
    """A setting has a value that it cannot have."""

    facts = ("setting", "found", "allowed")
    sentence = "Setting {setting} is {found!r}; it must be {allowed}"
    setting: str
    found: object
    allowed: str


class UnknownOperatorError(DefinitionError, AttributeError):
    """A group or an operator that nobody registered was asked for."""

    facts = ("wanted", "known")
    sentence = "{wanted} is not registered. Registered: {known}"
    wanted: str
    known: str


class PipelineDefinitionError(DefinitionError):
    """A pipeline's graph is malformed."""

    facts = ("pipeline", "reason")
    sentence = "Pipeline {pipeline!r}: {reason}"
    pipeline: str
    reason: str


class DefsYamlError(DefinitionError):
    """What a defs.yaml says cannot work."""

    facts = ("place", "subject", "reason", "excerpt")
    sentence = "{place}, {subject}: {reason}\n{excerpt}"
    place: str
    subject: str
    reason: str
    excerpt: str


class InputError(DataOpsError):
    """The input as a whole cannot be used."""

    facts = ("source", "reason")
    sentence = "Input {source}: {reason}"
    source: str
    reason: str


class UnencodableError(DataOpsError):
    """A value cannot be written as JSON."""

    facts = ("path", "reason")
    sentence = "{path} {reason}"
    path: str
    reason: str


class OperatorError(DataOpsError):
    """An operator failed."""


class RecordError(OperatorError):
    """An operator failed on one record.

    Attributes:
        operator: Qualified name, such as ``demo.process_uppercase``.
        index: Position of the record in the input, counted from 0.
        line: Line of ``path``, counted from 1.
        exception: Class name of what was raised.
        message: Its text.
        traceback_text: Where in the operator it was raised.
    """

    facts = ("operator", "index", "path", "line", "exception", "message", "traceback_text")
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
    """An operator failed on every record, or on one record after another; nothing was published.

    Attributes:
        operator: Qualified name, such as ``demo.process_uppercase``.
        found: What failed, as a clause.
        example: One of the failures: the exception, its text and where it was raised.
    """

    facts = ("operator", "found", "example")
    sentence = (
        "Operator {operator} stopped: {found}. Nothing was published: an earlier result stands.\n"
        "{example}\n"
        "What succeeded is kept, failed records count as not tried. Repair the cause and run again "
        "to go on from there (in Dagster re-execute or materialize, in plain Python with "
        "config.data_process_resume = True). If the records are the cause, set "
        "_stop_after_failures to a larger number, or to 0 to never stop and to publish even a "
        "result whose records all failed (`stop_after_failures` in YAML and in the launchpad)."
    )
    operator: str
    found: str
    example: str


class DatasetOperatorError(OperatorError):
    """A dataset operator failed; its previous result, if any, is untouched."""

    facts = ("operator", "reason", "traceback_text")
    sentence = "Operator {operator} failed on its dataset: {reason}\n{traceback_text}"
    operator: str
    reason: str
    traceback_text: str


class PartitionsFailedError(OperatorError):
    """Some partitions of a run of several failed; the others are made."""

    facts = ("asset", "failed", "total", "reasons")
    sentence = (
        "{asset}: {failed:,} of {total:,} partitions failed: {reasons}. The others are made and "
        "recorded; repair the cause and launch those that failed."
    )
    asset: str
    failed: int
    total: int
    reasons: str


class StorageError(DataOpsError):
    """Reading or writing a file failed."""

    facts = ("path", "action", "reason")
    sentence = (
        "{path}: cannot {action}: {reason}. Records finished so far are kept; "
        "repair the cause and run again to go on."
    )
    path: str
    action: str
    reason: str


class FolderLockedError(DataOpsError):
    """Another run is at work in this folder."""

    facts = ("folder", "holder", "waited_seconds")
    sentence = (
        "Folder {folder} is in use by {holder}; waited {waited_seconds:.1f} s. "
        "Wait until that run ends or stop it, then run again."
    )
    folder: str
    holder: str
    waited_seconds: float


class ResultMissingError(DataOpsError):
    """A published result was expected and is not there."""

    facts = ("path", "reason")
    sentence = "No result at {path}: {reason}. Materialize the operator that writes it first."
    path: str
    reason: str


class RetryRefusedError(DataOpsError):
    """The failed records of a result cannot be retried alone; the result stands as it is."""

    facts = ("path", "reason")
    sentence = (
        "The failed records of {path} cannot be retried alone: {reason}. Run the operator over "
        "all records: resume `auto` or `never` in the launchpad, in plain Python "
        "data_process_resume=False."
    )
    path: str
    reason: str


class RetryOutdatedError(RetryRefusedError):
    """The failed records of a result are no longer those of its input, which has changed since."""


class WorkerError(DataOpsError):
    """Worker processes cannot be started or kept alive."""

    facts = ("operator", "reason")
    sentence = "Operator {operator}: worker processes cannot run it: {reason}"
    operator: str
    reason: str


class RunStoppedError(DataOpsError):
    """The run was told to stop. What was finished is settled and will not be done again."""

    facts = ("operator", "reason")
    sentence = "Operator {operator} stopped: {reason}. Finished records are kept."
    operator: str
    reason: str


class MissingExtraError(DataOpsError):
    """A feature needs a package that is not installed."""

    facts = ("feature", "extra")
    sentence = "{feature} needs an optional package: pip install 'dagster-dataops[{extra}]'"
    feature: str
    extra: str


class SelectorSyntaxError(DefinitionError, ValueError):
    """A column selector is malformed.

    Attributes:
        selector: As it was given.
        column: Where the fault is, counted from 1.
        reason: What is wrong there.
    """

    facts = ("selector", "column", "reason")
    sentence = "Selector {selector!r} is malformed at column {column}: {reason}"
    selector: str
    column: int
    reason: str

    @override
    def __str__(self) -> str:
        shown = "".join(" " if one.isspace() else one for one in self.selector)
        return f"{super().__str__()}\n  {shown}\n  {' ' * (self.column - 1)}^"


class MissingColumnError(DataOpsError, ValueError):
    """A selector names an element that the record does not have; nothing was changed."""

    facts = ("path", "found")
    sentence = "The record has no element at path {path!r}: {found}"
    path: str
    found: str


class SelectedElementError(DataOpsError, RuntimeError):
    """A function failed on a selected element; the cause is the function's own exception."""

    facts = ("path", "exception", "message")
    sentence = "The function failed on the element at path {path!r}: {exception}: {message}"
    path: str
    exception: str
    message: str


class StreamDefinitionError(DefinitionError, ValueError):
    """A stage of a stream was given an argument with which it cannot work."""

    facts = ("stage", "reason")
    sentence = "Stream stage {stage}: {reason}"
    stage: str
    reason: str


class StreamArgumentError(StreamDefinitionError, TypeError):
    """A stage of a stream was given an argument of the wrong type."""


class DataPipelineError(DataOpsError, RuntimeError):
    """A stream cannot go on."""


class StreamSourceError(DataPipelineError, InputError):
    """The source of a stream cannot be read."""

    facts = ("source", "reason")
    sentence = "Input {source}: {reason}"


class StreamItemError(DataPipelineError):
    """An item of a stream that is to be written is no record."""

    facts = ("stream", "index", "reason")
    sentence = "Stream {stream}: item {index:,} {reason}"
    stream: str
    index: int
    reason: str


class StreamStateError(DataOpsError, ValueError):
    """A state cannot be taken of a stream, or is none of this stream."""

    facts = ("reason",)
    sentence = "Stream state: {reason}"
    reason: str
