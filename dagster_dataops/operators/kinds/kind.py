"""`OperatorKind`: what the operators of a kind take and give, what they may do, what runs them.

The rest of the package asks an `OperatorKind`, and never which one it is.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeAlias

from dagster_dataops.foundation.override import override


class Inputs(Enum):
    """How an operator takes its inputs."""

    SOURCE = "none: it reads a source"
    RECORDS = "one dataset, to which several are joined"
    DATASETS = "whole datasets, one for each parameter that is annotated as one"
    ITERATORS = "an iterator over the records of each input"
    STREAMS = "a stream for each input"


class Result(Enum):
    """What the result holds."""

    RECORDS = "records"
    FOLDER = "a list of files in a folder of the node, which others take as an option"
    EXPORT = "a list of files at the path that is the first option"


class RecordOrigin(Enum):
    """How the records of a result follow from those of the inputs, as far as the kind tells."""

    EACH = "each is made of one record of the input, in its order"
    SAME = "they are records of the input, unchanged"
    MIXED = "they may be records of any input, in any order"
    UNKNOWN = "not known"


class Tracing(Enum):
    """How a record of the result is traced to its input."""

    RECORD = "by a map that is published with the result"
    POSITION = "by the positions of the stages of a stream"
    NONE = "it is not"


class OperatorKind(NamedTuple):
    """A kind of operators. Pass all fields by keyword.

    Attributes:
        name: The name, as manifests hold it.
        method: The method that processes data.
        further_methods: Methods that a class needs besides.
        batch_methods: Methods that a class may define in place of ``method``; they take
            ``_batch_size`` records.
        window_method: That of them which returns records for the batch, not one outcome for each
            of its records; empty for none.
        of_functions: Whether a function can implement the method: ``rewrite_func`` names it.
        precedence: Of the kinds whose methods a class has, those with the lowest number count.
            Kinds whose methods have common names have a higher one.
        takes: What the first parameter takes, for errors.
        inputs: How an operator takes its inputs.
        path_parameter: Name of the last parameter of the method, which gets the path that it
            writes to; empty for none.
        one_input: Whether there is exactly one parameter before ``path_parameter``.
        check: Checks a class further, given the kind, the name of the class, the class and its
            method; raises `OperatorDefinitionError`.
        runner: The class that runs the operators, as ``module:name``; imported on the first run.
        result: What the result holds.
        by_record: Whether the method is called for one record, or one batch, after the other, and
            each record is settled alone: it can be ``async def``, it can have ``open`` and
            ``close``, and it has an error rate.
        returns_outcome: Whether what the method returns is the outcome of the record: it may go to
            named results, it can be reused, and the method may take a context.
        usual: Whether most operators are of it, so that pages leave its name out.
        recorded_as: The key under which other values are recorded that the method returns.
        agents: Whether agents of a cluster may run it.
        may_sum_up: Whether its class may say that the result is made of new records.
        origin: How the records of the result follow from those of the inputs.
        trace: How a record of the result is traced to its input.
        as_a_whole: Why single records cannot be run again, or traced; empty if they can.
        chained: Whether it may be a part of a chain.
        not_chained: Why not.
        always_saved: Why its result is always saved; empty if it need not be.
        not_exported: Why ``set_output`` is refused; ``{option}`` stands for the name of the first
            option. Empty if it is not.
    """

    name: str
    method: str
    inputs: Inputs
    runner: str
    further_methods: tuple[str, ...] = ()
    batch_methods: tuple[str, ...] = ()
    window_method: str = ""
    of_functions: bool = False
    precedence: int = 1
    takes: str = "the records"
    path_parameter: str = ""
    one_input: bool = False
    check: "ClassCheck | None" = None
    result: Result = Result.RECORDS
    by_record: bool = False
    returns_outcome: bool = False
    usual: bool = False
    recorded_as: str = ""
    agents: bool = False
    may_sum_up: bool = False
    origin: RecordOrigin = RecordOrigin.UNKNOWN
    trace: Tracing = Tracing.NONE
    as_a_whole: str = ""
    chained: bool = False
    not_chained: str = ""
    always_saved: str = ""
    not_exported: str = ""

    @override
    def __repr__(self) -> str:
        return f"<kind {self.name}>"

    @property
    def text(self) -> str:
        """The kind in words, such as ``record operator``."""
        return f"{self.name} operator"

    @property
    def noun(self) -> str:
        """The name with its article, such as ``an artefact``."""
        return f"{'an' if self.name[:1] in 'aeiou' else 'a'} {self.name}"

    @property
    def ways(self) -> tuple[tuple[str, ...], ...]:
        """The sets of methods that make a class one of this kind; the first one processes data."""
        return tuple((way, *self.further_methods) for way in (self.method, *self.batch_methods))

    @property
    def function_methods(self) -> tuple[str, ...]:
        """The methods that a function can implement."""
        return (self.method, *self.batch_methods) if self.of_functions else ()

    @property
    def reads_source(self) -> bool:
        """Whether it has no input."""
        return self.inputs is Inputs.SOURCE

    @property
    def takes_streams(self) -> bool:
        """Whether each input is a stream."""
        return self.inputs is Inputs.STREAMS

    @property
    def holds_files(self) -> bool:
        """Whether the result lists files instead of holding records."""
        return self.result is not Result.RECORDS

    @property
    def makes_folder(self) -> bool:
        """Whether the result is a folder that others take as an option."""
        return self.result is Result.FOLDER

    @property
    def exports(self) -> bool:
        """Whether it writes to the path that is its first option."""
        return self.result is Result.EXPORT

    @property
    def refused_in_chains(self) -> str:
        """Why it cannot be a part of a chain; empty if it can."""
        if self.chained:
            return ""
        return self.not_chained or (
            f"is {self.noun} operator, which takes all records of the part before it at once, and "
            "a chain takes one record after the other; make it a node of its own, between "
            "two chains"
        )


ClassCheck: TypeAlias = Callable[[OperatorKind, str, type, str], None]
