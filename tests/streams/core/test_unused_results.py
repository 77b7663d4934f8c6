"""A warning about operations of streams whose result is not used."""

import contextlib
import copy
import pickle
import warnings
from functools import partial

import pytest

from dagster_dataops import (
    DataLoader2,
    DataPipeline,
    DefaultTaskEncoder,
    crude,
    get_train_dataset,
    graphs,
    metadataset,
    read_sequence,
)
from dagster_dataops.errors import StreamArgumentError, UnusedStreamWarning
from tests.each import each
from tests.training.cooking.mixtures import cook_text, dataset, written


class Cooking(DefaultTaskEncoder):
    cookers = (cook_text,)


def builder():
    return read_sequence(list(range(10)))


def double(number):
    return 2 * number


STATEMENTS = {
    "map": "map(double)",
    "filter": "filter(bool)",
    "shard": "shard(0, 2, allow_uneven=True)",
    "shuffle": "shuffle(*[0])",
    "bucket": "bucket(**{'bucket_size': 2})",
    "collate": "bucket(2).collate()",
    "pack": "map(lambda number: [number]).pack(2, 2)",
    "prefetch": "prefetch(2)",
    "repeat": "repeat(2)",
    "take": "skip(1).take(2)",
    "workers": "workers(1)",
}
FORMS = (
    "stream.{}",
    "if stream: stream.{}",
    "for _ in [1]:\n    stream.{}",
    "stream and stream.{}",
    "def function(stream):\n    stream.{}\nfunction(stream)",
    "try:\n    stream.{}\nfinally:\n    pass",
    "with warned:\n    stream.{}\n    number = 1",
)


@each("name", STATEMENTS)
@each("form", FORMS)
def test_a_statement_warns(name, form):
    names = {"stream": builder(), "double": double, "warned": warnings.catch_warnings()}
    message = rf"the result of {name}\(\) is not used.*write builder = builder.{name}\("
    with pytest.warns(UnusedStreamWarning, match=message):
        exec(form.format(STATEMENTS[name]), names)  # noqa: S102 - the code of the test


def test_the_warning_names_the_line_of_the_statement():
    stream = builder()
    with pytest.warns(UnusedStreamWarning) as caught:
        stream.map(double)
    (found,) = caught
    assert found.filename == __file__


def test_a_finished_stream_warns_as_well():
    stream = builder().and_return()
    with pytest.warns(UnusedStreamWarning, match=r"workers\(\)"):
        stream.workers(2)


def test_crude_streams_warn_as_well(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    dataset(tmp_path / "a", 4)
    mix = metadataset(written(tmp_path, "  train: {concat: [{path: a}]}\n"))
    for stream in (crude(tmp_path / "a"), mix, crude(tmp_path / "a").index()):
        with pytest.warns(UnusedStreamWarning, match=r"take\(\)"):
            stream.take(1)
    with pytest.warns(UnusedStreamWarning, match=r"cook\(\)"):
        crude(tmp_path / "a").cook(cook_text)


def returned(stream):
    return stream.map(double)


def ignored(*_):
    return None


def used(stream):
    """Use the results of operations in all ways that are not statements."""
    yield stream.map(double)
    yield isinstance(stream.map(double), int)
    yield stream.map(double).is_infinite()
    yield [*stream.map(double)]
    yield {"stream": stream.map(double)}
    yield f"{stream.map(double)}"
    yield (lambda: stream.map(double))()  # noqa: PLC3002 - one more kind of code
    yield returned(stream)
    yield stream.map(double) is stream
    yield [one.map(double) for one in [stream]]
    yield partial(stream.map, double)()
    yield copy.copy(stream.map(double))
    yield list(pickle.loads(pickle.dumps(stream.map(double))))
    yield graphs.find(stream.map(double), "map") if hasattr(graphs, "find") else None
    yield list(DataLoader2(stream.map(double)))
    yield DataPipeline.concat(stream.map(double), stream.take(2))
    yield (chosen := stream.map(double))
    del chosen
    ignored(stream.map(double))  # a statement, but the builder is an argument of its call
    assert stream.map(double)
    kept = stream.map(double)
    kept = kept.take(1)
    kept.and_return()
    dropped = stream.map(double)
    del dropped
    returned(stream)  # the function may be called for another reason


def test_a_result_that_is_used_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in used(builder()):
            pass


def test_an_operation_that_raises_does_not_warn():
    stream = builder()
    with pytest.raises(StreamArgumentError):
        stream.map(3)
    with pytest.raises(TypeError):
        len(stream.map(double))
    with contextlib.suppress(ZeroDivisionError):
        ignored(stream.map(double), 1 / 0)


def test_functions_that_build_streams_inside_do_not_warn(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = dataset(tmp_path / "a", 4)
    get_train_dataset(folder, task_encoder=Cooking(), batch_size=2, shuffle_buffer_size=4)
    metadataset(written(tmp_path, "  train: {concat: [{path: a}]}\n"), cookers=cook_text)
    DataLoader2(builder().map(double))
