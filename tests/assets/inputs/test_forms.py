"""Tests of the forms of results: what inputs get, and what assets may return."""

from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import orjson
import pandas as pd
import pytest

import dagster_dataops
from dagster_dataops import DataOpsIOManager, JsonlDataset
from dagster_dataops.assets.inputs import forms
from dagster_dataops.assets.inputs.io_manager import in_form, records_of
from dagster_dataops.errors import ConfigurationError, InputError
from tests.assets.helpers import dataset_of, resource_at
from tests.docstring_examples import example_in
from tests.each import each

Rows = list[dict[str, Any]]
ROWS: Rows = [{"id": 0, "text": "a"}, {"id": 1, "text": None, "meta": {"tags": ["x"]}}]
FILLED: Rows = [
    {"id": 0, "text": "a", "meta": None},
    {"id": 1, "text": None, "meta": {"tags": ["x"]}},
]
READ: dict[str, Callable[[Any], Rows]] = {
    "polars.DataFrame": lambda frame: frame.to_dicts(),
    "polars.LazyFrame": lambda frame: frame.collect().to_dicts(),
    "pyarrow.Table": lambda table: table.to_pylist(),
    "pyarrow.RecordBatchReader": lambda reader: reader.read_all().to_pylist(),
    "pyarrow.dataset.Dataset": lambda dataset: dataset.to_table().to_pylist(),
    "datasets.Dataset": list,
}
ARROW = [name for name in READ if not name.startswith("polars")]
PLAIN: dict[str, Any] = {
    "list": list[dict],
    "sequence": Sequence[dict],
    "iterator": Iterator,
    "generator": Generator,
}


def class_of(name: str) -> Any:
    """Return a class by its name: importing polars starts threads, so tests import it late."""
    module, _, own = name.rpartition(".")
    return getattr(pytest.importorskip(module), own)


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., JsonlDataset]:
    """Write records, and return their handle."""

    def write(rows: Rows, name: str = "rows") -> JsonlDataset:
        return dataset_of(tmp_path / f"{name}.jsonl", rows)

    return write


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the forms that a test registers."""
    monkeypatch.setattr(forms, "_FORMS", dict(forms._FORMS))


TIMES: Rows = [{"date": "2024-01-01 00:00:00", "id": "007", "nan": "NaN", "big": 2**53 + 1}]
TABLES: list[tuple[list[Rows], Rows]] = [
    ([ROWS], FILLED),
    ([TIMES], TIMES),  # texts that look like times or numbers stay texts
    ([[]], []),
    ([], []),
    (
        [[{"a": 1, "b": "x"}], [], [{"c": [1], "a": 1.5}, {}]],
        [
            {"a": 1.0, "b": "x", "c": None},
            {"a": 1.5, "b": None, "c": [1]},
            {"a": None, "b": None, "c": None},
        ],
    ),
]


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize(("parts", "rows"), TABLES)
def test_a_table_has_a_column_for_every_key_of_all_partitions_in_order(
    name: str, parts: list[Rows], rows: Rows, written: Callable[..., JsonlDataset]
) -> None:
    annotation, read = class_of(name), READ[name]
    files = [written(part, str(9 - number)) for number, part in enumerate(parts)]
    value = in_form(files, annotation)
    assert isinstance(value, annotation)
    assert read(value) == rows


@pytest.mark.parametrize("name", PLAIN)
def test_records_keep_their_keys(name: str, written: Callable[..., JsonlDataset]) -> None:
    assert list(in_form([written(ROWS)], PLAIN[name])) == ROWS


def test_a_stream_of_hugging_face_reads_records_one_by_one(
    written: Callable[..., JsonlDataset],
) -> None:
    stream = in_form([written(ROWS)], class_of("datasets.IterableDataset"))
    assert list(stream) == ROWS
    assert list(records_of(stream)) == ROWS


FRAMES: dict[str, Rows] = {
    "nothing": [],
    "missing": [{"a": 1}, {"b": "x"}, {}, {"a": 2, "c": True}],
    "nulls": [{"a": 1, "b": "x", "c": True}, {"a": None, "b": None, "c": None}],
    "mixed": [{"a": 1}, {"a": "x"}, {"a": {"b": 1}}, {"a": [1]}],
    "numbers": [{"a": 1}, {"a": 1.5}, {"a": 5e-324}],
    "large": [{"a": 2**63}, {"a": 2**64 - 1}],
    "texts": [{"a": "007", "created_at": "2024-01-01", "b": "NaN"}, {"a": "\u2028"}],
    "late": [*({"a": number} for number in range(500)), {"b": 1}],
}


@each("name", FRAMES)
def test_a_pandas_frame_equals_that_of_a_list(
    name: str, written: Callable[..., JsonlDataset]
) -> None:
    rows = FRAMES[name]
    halves = [written(rows[: len(rows) // 2], "a"), written(rows[len(rows) // 2 :], "b")]
    pd.testing.assert_frame_equal(in_form(halves, pd.DataFrame), pd.DataFrame(rows))


def test_records_without_columns_are_counted(written: Callable[..., JsonlDataset]) -> None:
    dataset = written([{}, {}])
    assert len(in_form([dataset], pd.DataFrame)) == 2
    assert in_form([dataset], class_of("pyarrow.Table")).num_rows == 2
    assert in_form([dataset], class_of("polars.DataFrame")).height == 2


@pytest.mark.parametrize("name", ARROW)
@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([{"a": 1}, {"a": "x"}], "line 2: column 'a' cannot be one of Arrow: it holds a text"),
        ([{"a": True}, {"a": 1}], "the records before it hold bool"),
        ([{"a": 2**60 + 1}, {"a": 0.5}], "it holds an integer (1152921504606846977)"),
    ],
)
def test_a_column_of_two_types_is_refused_by_file_and_line(
    name: str, rows: Rows, named: str, written: Callable[..., JsonlDataset]
) -> None:
    with pytest.raises(InputError) as caught:
        in_form([written(rows)], class_of(name))
    assert named in str(caught.value)
    assert "annotate the input as list[dict] or JsonlDataset" in str(caught.value)
    parts = [written([row], str(number)) for number, row in enumerate(rows)]
    with pytest.raises(InputError, match=r"[01]\.jsonl, line 1"):
        in_form(parts, class_of(name))


def test_a_column_that_polars_cannot_read_is_refused_with_its_reason(
    written: Callable[..., JsonlDataset],
) -> None:
    with pytest.raises(InputError, match=r"rows\.jsonl: is refused by polars: .*list\[dict\]"):
        in_form([written([{"a": {"x": 1}}, {"a": 3}])], class_of("polars.DataFrame"))


def test_a_reader_holds_one_batch_at_a_time(written: Callable[..., JsonlDataset]) -> None:
    dataset = written([{"id": number} for number in range(2500)])
    reader = in_form([dataset], class_of("pyarrow.RecordBatchReader"))
    sizes = [batch.num_rows for batch in reader]
    assert sizes == [1000, 1000, 500]


def test_a_path_is_that_of_the_result(written: Callable[..., JsonlDataset]) -> None:
    datasets = [written(ROWS, "a"), written([], "b")]
    assert in_form([datasets[0]], Path) == datasets[0].path
    assert in_form(datasets, list[Path]) == [one.path for one in datasets]
    with pytest.raises(InputError, match=r"of 2 partitions: cannot be one Path; .* list\[Path\]"):
        in_form(datasets, Path)


def test_a_list_of_forms_has_one_for_each_partition(written: Callable[..., JsonlDataset]) -> None:
    datasets = [written([{"a": 1}], "a"), written([{"a": "x"}], "b")]
    assert in_form(datasets, list[JsonlDataset]) == datasets
    tables = class_of("pyarrow.Table")
    frames = in_form(datasets, list[class_of("polars.LazyFrame")])
    assert [frame.collect().to_dicts() for frame in frames] == [[{"a": 1}], [{"a": "x"}]]
    assert [table.to_pylist() for table in in_form(datasets, Sequence[tables])] == [
        [{"a": 1}],
        [{"a": "x"}],
    ]


RETURNED: dict[str, Callable[[], Any]] = {
    "lazy frame": lambda: class_of("polars.LazyFrame")(FILLED),
    "polars frame": lambda: class_of("polars.DataFrame")(FILLED),
    "table": lambda: class_of("pyarrow.Table").from_pylist(FILLED),
    "batch": lambda: class_of("pyarrow.RecordBatch").from_pylist(FILLED),
    "reader": lambda: class_of("pyarrow.Table").from_pylist(FILLED).to_reader(),
    "arrow dataset": lambda: class_of("pyarrow.dataset.dataset")(
        class_of("pyarrow.Table").from_pylist(FILLED)
    ),
    "hugging face": lambda: class_of("datasets.Dataset").from_list(FILLED),
    "list": lambda: FILLED,
    "iterator": lambda: iter(FILLED),
}


@pytest.mark.parametrize("name", RETURNED)
def test_an_asset_may_return_every_form(
    name: str, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(io_manager_key="dataops_io")
    def made() -> Any:
        return RETURNED[name]()

    io = {"dataops_io": DataOpsIOManager(dataops=resource_at(root))}
    dg.materialize([made], resources=io, instance=instance)
    lines = (root / "made/made_results.jsonl").read_bytes().splitlines()
    assert list(map(orjson.loads, lines)) == FILLED


@pytest.mark.parametrize("name", READ)
def test_a_form_stands_between_partitions_of_assets(
    name: str, root: Path, instance: dg.DagsterInstance
) -> None:
    annotation, read = class_of(name), READ[name]
    found: list[Any] = []
    parts = dg.StaticPartitionsDefinition(["b", "a"])

    @dg.asset(io_manager_key="dataops_io", partitions_def=parts)
    def made(context: dg.AssetExecutionContext) -> Any:
        return [{"key": context.partition_key}]

    def one(made: Any) -> None:
        found.append(read(made))

    def by_key(made: Any) -> None:
        found.append({key: read(value) for key, value in made.items()})

    one.__annotations__["made"] = annotation
    by_key.__annotations__["made"] = dict[str, annotation]
    assets = [made, dg.asset(one), dg.asset(by_key)]
    io = {"dataops_io": DataOpsIOManager(dataops=resource_at(root))}
    keywords: dict[str, Any] = {"resources": io, "instance": instance}
    for key in ("a", "b"):
        dg.materialize([made], partition_key=key, **keywords)
    dg.materialize(assets, selection=[*assets[1:]], **keywords)
    assert sorted(found, key=str) == [
        [{"key": "b"}, {"key": "a"}],
        {"b": [{"key": "b"}], "a": [{"key": "a"}]},
    ]


@pytest.mark.parametrize("annotation", [int, set, bytes, dict[str, set]], ids=str)
def test_an_unknown_annotation_is_refused_with_the_known_ones(
    annotation: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(io_manager_key="dataops_io")
    def made() -> Any:
        return ROWS

    def down(made: Any) -> None: ...

    down.__annotations__["made"] = annotation
    io = {"dataops_io": DataOpsIOManager(dataops=resource_at(root))}
    job = dg.materialize(
        [made, dg.asset(down)], resources=io, instance=instance, raise_on_error=False
    )
    (failed,) = [event for event in job.all_events if event.is_step_failure]
    error = failed.step_failure_data.error
    while error.cause is not None:
        error = error.cause
    assert "'made' of made: is annotated as" in error.message
    assert "list, Sequence, Iterator" in error.message
    assert "dagster_dataops.assets.register_form" in error.message


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_two_columns_of_one_name_are_refused(library: str) -> None:
    if library == "pandas":
        value: Any = pd.DataFrame([[1, 2]], columns=["a", "a"])
    else:
        value = class_of("pyarrow.table")([[1], [2]], names=["a", "a"])
    with pytest.raises(InputError, match="column 'a': occurs twice in the value"):
        list(records_of(value))


def test_a_pandas_frame_is_stored_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "_STORED_ROWS", 2)
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [0.5, None, 1.0]})
    assert list(records_of(frame)) == [
        {"a": 1, "b": 0.5},
        {"a": None, "b": None},
        {"a": 3, "b": 1.0},
    ]


@pytest.mark.usefixtures("registered")
def test_the_example_of_register_form_runs(written: Callable[..., JsonlDataset]) -> None:
    texts = example_in(
        dagster_dataops.assets.register_form, register_form=dagster_dataops.assets.register_form
    )["Texts"]
    value = in_form([written([{"text": "a"}], "a"), written([{"text": "b"}], "b")], texts)
    assert isinstance(value, texts)
    assert value == ["a", "b"]
    assert list(records_of(value)) == [{"text": "a"}, {"text": "b"}]

    class Sorted(texts): ...

    assert list(records_of(Sorted(["c"]))) == [{"text": "c"}]


@pytest.mark.usefixtures("registered")
def test_a_form_can_be_registered_by_name_and_replaced(
    written: Callable[..., JsonlDataset],
) -> None:
    dagster_dataops.assets.register_form("polars.DataFrame", load=len)
    frame = class_of("polars.DataFrame")
    assert frame.__module__ != "polars"
    assert in_form([written(ROWS)], frame) == 1


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"kind": "Relation", "load": list}, "'duckdb.Relation'"),
        ({"kind": 3, "load": list}, "a class or a name"),
        ({"kind": list}, "a function"),
        ({"kind": list, "load": "list"}, "a function"),
        ({"kind": list, "store": 1}, "a function"),
    ],
)
@pytest.mark.usefixtures("registered")
def test_what_is_no_form_is_refused(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        dagster_dataops.assets.register_form(**given)
