"""Tests of custom readers: by hand, of streams, as functions and as classes."""

import itertools
import json
from pathlib import Path
from typing import ClassVar

import pytest

from dagster_dataops import (
    DataPipeline,
    DataPipelineBuilder,
    Operator,
    Reader,
    pipeline,
    read_sequence,
)
from dagster_dataops.errors import (
    InputError,
    OperatorDefinitionError,
    OperatorOptionError,
    PipelineDefinitionError,
    StreamStateError,
)
from dagster_dataops.testing import assert_resumes_anywhere
from dagster_dataops.text import read_text
from tests.nodes import run_operator
from tests.registries import OperatorRegistry

registry = OperatorRegistry(run_operator)


@registry("data.own", columns={"text": str})
class Lines(Reader):
    """Yields the lines of a file."""

    def __init__(self, path: str, upper: bool = False):
        self.path, self.upper = path, upper

    def read_from(self, position):
        with Path(self.path).open("rb") as file:
            file.seek(position or 0)
            for line in iter(file.readline, b""):
                yield line, file.tell()

    def parse(self, line):
        text = line.decode().rstrip("\n")
        return {"text": text.upper() if self.upper else text}


@registry("data.own", columns={"text": str})
def lines(path: str, key: str = "text") -> DataPipelineBuilder:
    """The lines of a file, as a stream."""
    return read_text(path, key=key)


@registry("data.own", rewrite_func="stream", columns=["n"])
def numbers(count=3):
    return read_sequence([{"n": number} for number in range(count)])


@registry("data.own")
class Plain:
    """A class that is nothing else."""

    def __init__(self, count: int):
        self.count = count

    def stream(self):
        return DataPipeline.count(key="n").take(self.count)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "lines").write_text("a\nb\n\nc")
    return str(tmp_path / "lines")


EXPECTED = [{"text": "a"}, {"text": "b"}, {"text": ""}, {"text": "c"}]


def test_a_reader_by_hand_reads_and_parses(path):
    reader = registry.group("own").Lines(path=path)

    assert reader() == list(reader) == EXPECTED
    assert Lines(path, upper=True)()[:2] == [{"text": "A"}, {"text": "B"}]
    assert (reader.name, reader.description) == ("Lines", "Yields the lines of a file.")
    assert reader.columns == reader.column_types() == {"text": str}


def test_a_reader_by_hand_resumes_at_any_position(path):
    assert_resumes_anywhere(Lines(path).stream)
    assert_resumes_anywhere(lambda: Lines(path).stream().shuffle(3, seed=1).repeat(2).prefetch(2))


def test_its_position_may_be_anything_that_json_holds():
    class Grid(Reader):
        def read_from(self, position):
            for row, column in itertools.product(range(3), range(2)):
                if position is None or (row, column) > position[0]:
                    yield {"at": [row, column]}, ((row, column), b"\xff")

    assert len(Grid()()) == 6
    assert_resumes_anywhere(Grid().stream)


def test_a_position_of_other_options_or_content_is_refused(path, tmp_path):
    class Known(Lines.__mro__[1]):  # the class as it was written
        def identity(self):
            return Path(self.path).read_text()

    state = Lines(path).stream().and_return().state_dict()
    with pytest.raises(StreamStateError):
        Lines(path, upper=True).stream().and_return().load_state_dict(state)
    state = json.loads(json.dumps(Known(path).stream().and_return().state_dict()))
    (tmp_path / "lines").write_text("other")
    with pytest.raises(StreamStateError, match="data"):
        Known(path).stream().and_return().load_state_dict(state)


def test_a_function_that_returns_a_stream_is_a_reader(path):
    reader = registry.group("own").lines(path=path)

    assert reader() == lines(path)() == EXPECTED
    assert (reader.name, reader.description) == ("lines", "The lines of a file, as a stream.")
    assert isinstance(reader, Operator)
    assert repr(reader) == f"data.own.lines(path={path!r})"
    assert_resumes_anywhere(reader.stream)


def test_a_function_may_be_registered_as_a_reader():
    assert numbers()() == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert numbers(1)() == [{"n": 0}]


def test_a_plain_class_with_a_stream_is_a_reader():
    assert Plain(2)() == [{"n": 0}, {"n": 1}]
    assert Plain(2).name == "Plain"


def test_a_group_has_classes_of_readers_as_well():
    class Below(Reader, registry.new_group("own")):
        """Below a group."""

        columns: ClassVar = {"n": int}

        def stream(self):
            return read_sequence([{"n": 7}])

    assert registry.group("own").Below()() == [{"n": 7}]
    assert Below().column_types() == {"n": int}

    with pytest.raises(OperatorDefinitionError, match=r"inherit from dagster_dataops\.Reader"):
        type("Bare", (registry.new_group("own"),), {"stream": Plain.stream, "__qualname__": "B"})


def test_an_operator_of_records_may_have_a_method_of_that_name():
    @registry("data.own")
    class Talks:
        def stream(self):
            return "tokens"

        def forward(self, data):
            return {"said": self.stream()}

    assert Talks(_concurrency_mode="single")([{}]) == [{"said": "tokens"}]


@pytest.mark.parametrize(
    ("make", "option", "fault"),
    [
        (Lines, "path", "is required"),
        (lambda: Lines(3), "path", "must be str; got int: 3"),
        (lambda: Lines("x", upper="yes"), "upper", "must be bool; got str"),
        (lambda: Lines("x", True, 3), "argument 3", r"takes 2 by position \(path, upper\)"),
        (lambda: Lines("x", path="y"), "path", "was given twice"),
        (lambda: Lines("x", uppe=True), "uppe", "did you mean 'upper'"),
        (lambda: Lines("x", _max_workers=2), "_max_workers", "does not apply to a reader"),
        (lambda: lines(3), "path", "must be str"),
    ],
)
def test_an_option_that_does_not_fit_is_named_with_its_reader(make, option, fault):
    found = rf"own\.(Lines|lines): option '{option}'.*{fault}"
    with pytest.raises(OperatorOptionError, match=found):
        make()


def test_settings_of_execution_are_refused_where_it_is_registered():
    with pytest.raises(OperatorDefinitionError, match="leave out _max_workers"):
        registry("data.own", _max_workers=2)(Plain.__mro__[1])


def test_a_function_that_returns_no_stream_is_refused():
    @registry("data.own", rewrite_func="stream")
    def wrong():
        return [1]

    with pytest.raises(OperatorDefinitionError, match=r"own\.wrong.*returned a list"):
        wrong().stream()


def test_a_reader_without_a_method_is_refused():
    class Empty(Reader):
        pass

    with pytest.raises(OperatorDefinitionError, match="read_from"):
        Empty()()


def test_a_reader_is_the_source_of_a_pipeline(path):
    @registry("data.own", reads={"text": str}, writes={"length": int}, _concurrency_mode="thread")
    def measure(record):
        record["length"] = len(record["text"])
        return record

    with pipeline() as ppl:
        ppl.measure = measure()

    assert ppl(lines(path)) == [{**row, "length": len(row["text"])} for row in EXPECTED]
    assert measure()(Lines(path)) == ppl(path_of := Lines(path)) == ppl(path_of.stream())
    with pytest.raises(PipelineDefinitionError, match="'text' as str, which the source does not"):
        ppl(numbers())
    with pytest.raises(PipelineDefinitionError, match="'text' as str, which the source does not"):
        ppl.materialize(numbers())


def test_a_reader_takes_no_records():
    with pytest.raises(InputError, match="the reader numbers accepts none"):
        numbers()([{"n": 1}])


def test_a_reader_is_not_a_node():
    ppl = pipeline()

    with pytest.raises(PipelineDefinitionError, match="'first' is the reader numbers"):
        ppl.first = numbers()
