"""Every error that this package raises, as one tree.

 DataOpsError
 |-- DefinitionError              a definition is invalid; raised before anything runs
 |   |-- OperatorDefinitionError      a function or class is not a valid operator
 |   |-- OperatorOptionError          an option is unknown or invalid
 |   |-- DuplicateOperatorError       two places register the same name
 |   |-- EntryPointError              what a package adds is unusable
 |   |-- ConfigurationError           a setting has an invalid value
 |   |-- UnknownOperatorError         a group or operator is not registered
 |   |-- ChainDefinitionError         operators cannot be made one chain
 |   |-- PipelineDefinitionError      cycles, unknown inputs, duplicate names
 |   |-- ConditionSyntaxError         a condition on records is malformed
 |   |-- DefsYamlError                a defs.yaml is invalid
 |   |-- DefsYamlFaultsError          several operators of a defs.yaml are invalid
 |   |-- SelectorSyntaxError          a selector is malformed; also a ValueError
 |   |-- MetadatasetError             a metadataset is invalid; names file, line and key
 |   |-- CookerError                  no cooker fits a crude dataset, or its parameters do not
 |   `-- StreamDefinitionError        a stage of a stream is invalid; also a ValueError
 |       `-- StreamArgumentError          an argument has the wrong type; also a TypeError
 |-- InputError                   the input cannot be read
 |-- MissingColumnError           a selected element is missing; also a ValueError
 |-- AbsentColumnError            no record has a column that an operator reads; also a ValueError
 |-- ConditionColumnError         no record has a column of a condition; also a ValueError
 |-- NoTextError                  an input key selects a value that is no text; also a TypeError
 |-- UnfitRecordError             a record does not fit an operator; also a ValueError
 |-- SelectedElementError         a function failed on an element; also a RuntimeError
 |-- DataPipelineError            a stream cannot continue; also a RuntimeError
 |   |-- StreamItemError              an item is not a valid record
 |   |-- StreamSourceError            the source cannot be read; also an InputError
 |   |   |-- DamagedFileError             a file, or the rest of it, is damaged or truncated
 |   |   |-- DuplicateKeyError            a key or a part of a sample occurs twice
 |   |   `-- IndexOutdatedError           a file was changed after it was indexed
 |   `-- StreamWorkerError            its worker processes cannot run it; also a WorkerError
 |-- AuxFileMissingError          a file store has no such file; also a KeyError
 |-- PathEscapeError              a name leaves its folder or store; also a ValueError
 |-- FileError                    a file that a record names cannot be used
 |   |-- FileReferenceError           the value names no file; also a ValueError
 |   `-- FileChangedError             the file is another one than the record names
 |-- UnknownSampleError           a dataset has no such sample; also a KeyError
 |-- StreamStateError             a state does not belong to the stream; also a ValueError
 |-- UnencodableError             JSON cannot hold a value
 |-- OperatorError                an operator failed
 |   |-- RecordError                  on one record
 |   |-- OutageError                  on every record, or on many in a row
 |   |-- DatasetOperatorError         on the whole dataset
 |   |-- ExportError                  a record does not fit the format of an export
 |   `-- PartitionsFailedError        on some partitions of a run over several
 |-- ModelError                   a call of a model failed
 |   |-- TransientModelError          a further try of the same request may succeed
 |   |   |-- RateLimitedError             the server takes no more requests at the moment
 |   |   |-- ServerFaultError             the server failed
 |   |   |-- UnreachableError             there was no connection, or it broke
 |   |   |-- CallTimeoutError             no reply came in time
 |   |   `-- BadReplyError                the reply is not what the protocol demands
 |   |       `-- EmptyReplyError              it has no text
 |   |-- FatalModelError              no other request would succeed; the run stops
 |   |   |-- AuthenticationFailedError    the key is refused
 |   |   |-- QuotaExhaustedError          the account has nothing left
 |   |   |-- ModelMissingError            the server does not have the model
 |   |   |-- BudgetSpentError             max_cost is reached
 |   |   |-- PriceMissingError            max_cost cannot be kept without a price of the model
 |   |   |-- WrongServerError             the address is not that of a server of models
 |   |   |-- UnaddressedRepliesError      it is not known which server made stored replies
 |   |   |-- EndpointFailingError         many calls in a row failed
 |   |   `-- ReplyNotRecordedError        a cassette does not have the reply
 |   |-- CallWithheldError            a record needs a call, and the run is to make none
 |   |-- BadRequestError              the server refuses the request
 |   |   |-- ContextTooLongError          it is too long for the model
 |   |   `-- ContentFilteredError         a filter stopped the request or the reply
 |   |-- RefusedError                 the model refuses to answer
 |   |-- TruncatedError               the reply was cut at the limit of its length
 |   |-- UnfinishedReplyError         the reply ended before the answer was complete
 |   |-- UnaskedToolCallError         the reply calls a tool that was not offered
 |   `-- InvalidOutputError           the replies do not have the form asked for
 |-- OperatorOpenError            open() or close() of an operator failed
 |-- OperatorContextError         an operator asked its context for something that is not there
 |-- StorageError                 a file operation failed
 |   |-- StoreRefusedError            an object store lacks what results need
 |   |-- FileNotStoredError           a file that an operator made cannot be stored
 |   `-- LostError                    another run has taken over the results of a node
 |-- FolderLockedError            another run is using the folder
 |-- ResultMissingError           a result was never published, or is damaged
 |   `-- VersionMissingError          a node has no such earlier result
 |-- NewerVersionError            files are those of a newer version of this package
 |-- RestoreRefusedError          an earlier result cannot be published again at the moment
 |-- RetryRefusedError            failed records cannot be retried alone
 |   |-- RetryOutdatedError           because the input has changed
 |   `-- RedoRefusedError             nor can records that a condition chooses
 |       `-- RedoOutdatedError            because the input has changed
 |-- TryRefusedError              the code of a node cannot be tried on some records
 |-- TraceError                   a record cannot be traced
 |   `-- TraceOutdatedError           because a file has changed since
 |-- WorkerError                  worker processes cannot start
 |   `-- UnprocessedError             because a run ended before all records were processed
 |-- ClusterError                 agents on a cluster cannot run an operator
 |   `-- EnvironmentDiffersError      because a node has another Python, package or operator
 |-- ExternalRunError             an external process and the asset that started it do not fit
 |-- ReviewError                  a decision about a record is not possible
 |-- RunStoppedError              a stop was requested; finished records are kept
 |   `-- RunWaitingError              the operator waits for something that takes long
 `-- MissingExtraError            an optional package is not installed

`UnusedStreamWarning` is a warning.

Errors cross process boundaries. So each stores its facts as constructor arguments and builds its
message in ``__str__``; a pickled copy equals the original.
"""

import re
from typing import Any, ClassVar, Final

_LOGIN: Final = r"(?<=://)[^\s/?#'\"@]*:[^\s/?#'\"]+@"  # a user and a password


def _without_logins(text: str) -> str:
    """Return a text whose URLs have no login."""
    return re.sub(_LOGIN, "(hidden)@", text) if "@" in text else text


class DataOpsError(Exception):
    """The base class: named facts, and a sentence made from them; it shows no login of a URL.

    The annotations of a subclass name its facts, in order.
    """

    facts: ClassVar[tuple[str, ...]] = ("reason",)
    sentence: ClassVar[str] = "{reason}"

    def __init_subclass__(cls) -> None:
        """Take the annotations as the facts; without any, those of the base class."""
        super().__init_subclass__()
        if cls.__annotations__:
            cls.facts = tuple(cls.__annotations__)

    def __init__(self, *values: object) -> None:
        super().__init__(*values)
        for name, value in zip(self.facts, values, strict=True):
            setattr(self, name, value)

    def __str__(self) -> str:
        """Return the sentence with the facts."""
        text = self.sentence.format(**{name: self._shown(name) for name in self.facts})
        return _without_logins(text)

    def _shown(self, name: str) -> Any:
        """Return a fact; without its full stop if the sentence has one behind it."""
        value = getattr(self, name)
        stopped = isinstance(value, str) and f"{{{name}}}." in self.sentence
        return value.removesuffix(".") if stopped else value


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


class EntryPointError(DefinitionError):
    """What an installed package adds by an entry point cannot be used.

    Attributes:
        name: The name of the entry.
        point: The group of entry points, such as ``dagster_dataops.operators``.
        package: Name and version of the package.
        reason: The fault, and what to do.
    """

    sentence = "Entry point {name!r} of {point} in the package {package}: {reason}"
    name: str
    point: str
    package: str
    reason: str


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


class DefsYamlFaultsError(DefinitionError):
    """Several operators of a defs.yaml are invalid."""

    sentence = "{count} operators cannot be made:\n\n{faults}"
    count: int
    faults: str


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


class ExportError(OperatorError):
    """A record does not fit the format of an export; the earlier export is unchanged.

    Attributes:
        target: The file or folder of the export.
        index: The position of the record, counted from 0.
        path: The file with the record.
        line: The line of the record in ``path``, counted from 1.
        column: The column, or the path in it; empty for the whole record.
        found: A clause that describes its content.
        remedy: A sentence with the remedy.
    """

    sentence = (
        "Export to {target}: record {index} ({path}, line {line}), column {column!r}: {found}. "
        "{remedy} Nothing was replaced."
    )
    target: str
    index: int
    path: str
    line: int
    column: str
    found: str
    remedy: str

    def __str__(self) -> str:
        """Return the sentence, without a column that is empty."""
        return super().__str__().replace(", column ''", "", 1)


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
        "{path}: cannot {action}: {reason}. Fix the cause and try again; "
        "records that a run has finished are kept."
    )
    path: str
    action: str
    reason: str


class StoreRefusedError(StorageError):
    """An object store cannot hold results, or cannot be reached."""

    sentence = (
        "{path}: cannot {action}: {reason}. Check address, credentials and the kind of the store."
    )


class FileNotStoredError(StorageError):
    """A file that an operator made cannot be stored; the run stops, and can be resumed."""


class LostError(StorageError):
    """Another run has taken over the results of a node on an object store."""

    sentence = (
        "{path}: cannot {action}: {reason}. Records that this run has stored are kept, and the "
        "other run continues with them. Run again after it has ended."
    )


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


class VersionMissingError(ResultMissingError):
    """A node has no such version of its result, or it is damaged."""

    sentence = "No such version of {path}: {reason}."


class NewerVersionError(DataOpsError):
    """A newer version of this package has written files that this one does not read.

    Nothing was changed.
    """

    sentence = (
        "{path} has format {found}, of a newer version of dagster-dataops; this version reads "
        "{reads}. Nothing was changed. Use that version, or put this out of the way to work "
        "without it."
    )
    path: str
    found: str
    reads: str


class RestoreRefusedError(DataOpsError):
    """An earlier result cannot be published again at the moment. Nothing was changed."""

    sentence = "Cannot restore a version of {path}: {reason}."
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


class RedoRefusedError(RetryRefusedError):
    """Records that a condition chooses cannot be processed again alone; nothing has changed."""

    sentence = (
        "The records of {path} that the condition chooses cannot be processed again alone: "
        "{reason}. Run the operator over all records: resume `auto` or `never` in the launchpad, "
        "in plain Python data_process_resume=False."
    )


class RedoOutdatedError(RedoRefusedError):
    """The chosen records of a result no longer match its input, which has changed."""


class ConditionSyntaxError(DefinitionError):
    """A condition on records is malformed.

    Attributes:
        condition: The condition.
        position: The character, counted from 1, where reading it stopped.
        reason: What was found there.
    """

    sentence = "Condition {condition!r}, character {position}: {reason}"
    condition: str
    position: int
    reason: str


class ConditionColumnError(DataOpsError, ValueError):
    """No record has a column that a condition names; nothing has changed."""

    sentence = "Condition {condition!r} names {column}, which no record of {path} has. {known}"
    condition: str
    column: str
    path: str
    known: str


class TryRefusedError(DataOpsError):
    """The present code of a node cannot be tried on some of its records; nothing has changed."""

    sentence = "The code of {node} cannot be tried on some records: {reason}"
    node: str
    reason: str


class TraceError(DataOpsError):
    """A record cannot be traced."""

    sentence = "Trace of {path}: {reason}"
    path: str
    reason: str


class TraceOutdatedError(TraceError):
    """A record cannot be traced, because a file has changed since a node read or published it."""


class WorkerError(DataOpsError):
    """Worker processes cannot be started or kept alive."""

    sentence = "Operator {operator}: worker processes cannot run it: {reason}"
    operator: str
    reason: str


class UnprocessedError(WorkerError):
    """A run ended before all records were processed."""

    sentence = "Operator {operator}: {reason}"


class ModelError(DataOpsError):
    """A call of a model failed.

    Attributes:
        retry_after: Seconds that the server asks to wait before the next request; ``None`` if it
            does not ask for a pause.
        overloaded: Whether the server has too many requests at the same time.
        connected: Whether there was a connection to the server.
        details: Keys of the record's error line: ``attempts``, ``request_id``, and of a reply that
            is of no use ``reply`` (its text), ``finish_reason`` and ``usage``.
        body: The JSON of a reply that has an error, with its usage; else ``None``.
        never_json: Whether the reply is a page of HTML or a stream of events, as of another kind of
            server.
    """

    sentence = "{reason}"
    reason: str

    def __init__(self, *values: object) -> None:
        super().__init__(*values)
        self.retry_after: float | None = None
        self.overloaded = False
        self.connected = True
        self.details: dict[str, object] = {}
        self.body: dict[str, Any] | None = None
        self.never_json = False


class TransientModelError(ModelError):
    """A call of a model failed; a further try of the same request may succeed."""


class RateLimitedError(TransientModelError):
    """The server takes no more requests at the moment (429)."""


class ServerFaultError(TransientModelError):
    """The server failed (408, 409 or 5xx)."""


class UnreachableError(TransientModelError):
    """There was no connection to the server, or it broke."""


class CallTimeoutError(TransientModelError):
    """No reply came in time."""


class BadReplyError(TransientModelError):
    """The reply is no JSON, or has no answer in it."""


class EmptyReplyError(BadReplyError):
    """The reply has no text, and the operator does not allow that. Its record fails at once."""


class FatalModelError(ModelError):
    """A call of a model failed, and no other one would succeed: the run stops resumably."""


class AuthenticationFailedError(FatalModelError):
    """The server refuses the key (401 or 403)."""


class QuotaExhaustedError(FatalModelError):
    """The account has no credit left (429 with the code ``insufficient_quota``)."""


class ModelMissingError(FatalModelError):
    """The server does not have the model or the endpoint (404)."""


class BudgetSpentError(FatalModelError):
    """The calls for a result have cost ``max_cost``."""


class PriceMissingError(FatalModelError):
    """The client has ``max_cost``, but no price of the model."""


class WrongServerError(FatalModelError):
    """The address redirects to another one, or answers with pages or events instead of JSON."""


class UnaddressedRepliesError(FatalModelError):
    """Stored replies do not name the server that made them, and the client does not tell."""


class EndpointFailingError(FatalModelError):
    """Many calls in a row failed, and pauses did not help."""


class ReplyNotRecordedError(FatalModelError):
    """A client that only replays recorded replies has none for a request."""


class CallWithheldError(ModelError):
    """A record needs a call of a model, and the run is to make none."""


class BadRequestError(ModelError):
    """The server refuses the request (400 or 422)."""


class ContextTooLongError(BadRequestError):
    """The request is too long for the model."""


class ContentFilteredError(BadRequestError):
    """A filter of the server stopped the request or the reply."""


class RefusedError(ModelError):
    """The model refuses to answer."""


class TruncatedError(ModelError):
    """The reply was cut at the limit of its length."""


class UnfinishedReplyError(ModelError):
    """The reply ended for a reason that is not the end of an answer, such as ``error``."""


class UnaskedToolCallError(ModelError):
    """The reply calls a tool, but the request offers none."""


class InvalidOutputError(ModelError):
    """Even the last reply does not have the form that was asked for."""


class ClusterError(DataOpsError):
    """No cluster answers, or its agents cannot run an operator."""

    sentence = "Cluster {cluster}: {reason}"
    cluster: str
    reason: str


class EnvironmentDiffersError(ClusterError):
    """A node has another Python, another package or other operator code than the head."""

    sentence = (
        "Cluster {cluster}: {part} on {node} is {there}, but {here} where the run was started; "
        "results would differ. Install the same versions on every machine, or use one image"
    )
    cluster: str
    part: str
    node: str
    there: str
    here: str


class OperatorOpenError(DataOpsError):
    """``open()`` or ``close()`` of an operator failed. No record is at fault."""

    sentence = "Operator {operator}: its {method}() failed: {reason}\n{traceback_text}"
    operator: str
    method: str
    reason: str
    traceback_text: str


class OperatorContextError(DataOpsError):
    """An operator asked its context for a name that it does not have."""

    sentence = "context.{wanted} {reason}"
    wanted: str
    reason: str


class RunStoppedError(DataOpsError):
    """The run was asked to stop. Finished records are kept and will not be processed again."""

    sentence = "Operator {operator} stopped: {reason}. Finished records are kept."
    operator: str
    reason: str


class RunWaitingError(RunStoppedError):
    """The operator waits for a long time, for example for a batch of requests.

    Finished records are kept. A later run continues.
    """

    sentence = "Operator {operator} waits: {reason}."


class ReviewError(DataOpsError):
    """A decision about a record is not possible; nothing was saved."""

    sentence = "The decision about {question} was not saved: {reason}"
    question: str
    reason: str


class ExternalRunError(DataOpsError):
    """Assets cannot be made in an external process, or for the asset that launched it."""

    sentence = "External run: {reason}"
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

    def __str__(self) -> str:
        """Return the sentence, and below it the selector with a mark at the column."""
        shown = "".join(" " if char.isspace() else char for char in self.selector)
        return f"{super().__str__()}\n  {shown}\n  {' ' * (self.column - 1)}^"


class MissingColumnError(DataOpsError, ValueError):
    """A selector selects an element that the record does not have; nothing was changed."""

    sentence = "The record has no element at path {path!r}: {found}"
    path: str
    found: str


class AbsentColumnError(DataOpsError, ValueError):
    """No record of an input has a column that an operator reads; nothing was published.

    Attributes:
        operator: The operator, with the part if it is a chain.
        column: The key, with the option that names it.
        records: Which records lack it.
        known: What they have instead, and what to do.
    """

    sentence = (
        "Operator {operator} reads {column}, which none of {records} has; nothing was published. "
        "{known}"
    )
    operator: str
    column: str
    records: str
    known: str


class NoTextError(DataOpsError, TypeError):
    """An input key of an operator on texts selects a value of another type.

    Attributes:
        key: The input key.
        kind: The type of the value.
        found: The beginning of the value.
    """

    sentence = (
        "The value of key {key!r} is no text but of type {kind}: {found}. Choose another "
        "input_key, or convert the value to a text first"
    )
    key: str
    kind: str
    found: str


class UnfitRecordError(DataOpsError, ValueError):
    """A record has values that an operator of the library cannot work with."""

    sentence = "{reason}"
    reason: str


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


class DamagedFileError(StreamSourceError):
    """A file, or the rest of it, is damaged, truncated, or not in the format of its reader.

    Streams that skip bad items go on behind it.
    """


class StreamItemError(DataPipelineError):
    """An item of a stream cannot be written, because it is not a valid record."""

    sentence = "Stream {stream}: item {index:,} {reason}"
    stream: str
    index: int
    reason: str


class StreamWorkerError(DataPipelineError, WorkerError):
    """Worker processes cannot be started for a stream, or an element ends them again and again."""

    sentence = "Stream stage {stage}: {reason}"
    stage: str
    reason: str


class StreamStateError(DataOpsError, ValueError):
    """A state cannot be taken, or does not belong to this stream."""

    sentence = "Stream state: {reason}"
    reason: str


class CookerError(DefinitionError, ValueError):
    """No cooker fits a crude dataset, or the parameters of the chosen one do not."""


class MetadatasetError(DefinitionError, ValueError):
    """A metadataset is invalid. No sample was read.

    Attributes:
        file: The path or URL of the YAML file.
        line: The line, counted from 1.
        key: The keys and indices that lead to the place, such as ``splits.train.blend[1].weight``.
        reason: The fault.
    """

    file: str
    line: int
    key: str
    reason: str

    def __str__(self) -> str:
        """Return file, line and key, and the reason."""
        place = f" ({self.key})" if self.key else ""
        return _without_logins(f"{self.file}, line {self.line}{place}: {self.reason}")


class DuplicateKeyError(StreamSourceError):
    """A key, or a part of a sample, occurs twice in a dataset.

    Attributes:
        source: The path of the dataset.
        key: The key, or the name of the file.
        first: The shard in which it occurs first.
        second: The shard in which it occurs again.
    """

    sentence = (
        "{source}: {key!r} occurs twice, in {first} and in {second}. The files of a sample must be "
        "adjacent, and its key unique; duplicates='first' or 'last' keeps one"
    )
    source: str
    key: str
    first: str
    second: str


class IndexOutdatedError(StreamSourceError):
    """A file was changed after it was indexed; nothing of it was used."""

    sentence = (
        "{source}: {found}; it was changed after it was indexed. Materialize the index again, in "
        "plain Python construct the dataset or the store again; data prepared by another program "
        "must be prepared again"
    )
    source: str
    found: str


class AuxFileMissingError(DataOpsError, KeyError):
    """A file store has no file of a name.

    Attributes:
        store: The store.
        name: The name.
        count: The number of files in the store.
        near: The most similar name; empty if there is none.
        unread: The fault of a shard behind which nothing was read; empty if all were read whole.
    """

    sentence = "{store}: no file {name!r} among {count:,}"
    store: str
    name: str
    count: int
    near: str
    unread: str

    def __str__(self) -> str:
        """Return the sentence, the files that were not read, and the nearest name."""
        hint = f"; nearest {self.near!r}" if self.near else ""
        rest = f", and not all were read: {self.unread}" if self.unread else ""
        return f"{super().__str__()}{rest}{hint}"


class PathEscapeError(DataOpsError, ValueError):
    """A name leads out of the folder or store that it belongs to. Nothing was read or written.

    Attributes:
        store: The store, or the file or object that has the name.
        name: The name.
    """

    sentence = "{store}: the name {name!r} leads out of the store; names are relative, without '..'"
    store: str
    name: object


class FileError(DataOpsError):
    """A file that a record names cannot be used.

    Attributes:
        where: Its path or URL, or the column of the value.
        found: A clause that describes the fault.
        remedy: A clause that says what to do.
    """

    sentence = "{where}: {found}; {remedy}"
    where: str
    found: str
    remedy: str


class FileReferenceError(FileError, ValueError):
    """A value of a record does not name a file."""


class FileChangedError(FileError):
    """A file is not the one that a record names, or was replaced while it was used."""


class UnusedStreamWarning(UserWarning):
    """The result of an operation of a stream is not used, so the operation has no effect."""


class UnknownSampleError(DataOpsError, KeyError):
    """A dataset has no sample of a key."""

    sentence = "{dataset}: no sample {key!r}: {reason}"
    dataset: str
    key: object
    reason: str
