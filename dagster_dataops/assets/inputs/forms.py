"""DataForm: the forms of results in assets that are no operators, such as DataFrames, in one table.

A form loads the results of an upstream asset for an input with its annotation, and turns what an
asset returns into records. Other packages add theirs by `register_form`. A library is imported when
a value of it is loaded.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dagster_dataops.checkpoints.folder.manifest import NodeFolder, load_artefact
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.exporters.packages import require
from dagster_dataops.errors import ConfigurationError, InputError, ResultMissingError
from dagster_dataops.foundation.places.parted_file import PartedFile
from dagster_dataops.foundation.quantities import counted

if TYPE_CHECKING:
    import pyarrow as pa

Datasets: TypeAlias = Sequence[JsonlDataset]
Load: TypeAlias = Callable[[Datasets], Any]
Store: TypeAlias = Callable[[Any], Iterable[Any]]
_STORED_ROWS: Final = 10_000  # rows of a frame that are Python objects at a time
_MISSING: Final = float("nan")  # as in the DataFrame of a list of records


@dataclass(frozen=True, slots=True)
class DataForm:
    """One form of results.

    Attributes:
        load: Returns the value for an input, given the datasets of its partitions in order; one
            dataset without partitions. ``None`` if inputs cannot have the form.
        store: Returns the records, as dicts, of a value that an asset returned. ``None`` if assets
            cannot return the form.
    """

    load: Load | None = None
    store: Store | None = None


def register_form(
    kind: type | str, *, load: Load | None = None, store: Store | None = None
) -> None:
    """Let assets take or return values of another class through `DataOpsIOManager`.

    Call it in a module that the code location imports. A later call replaces an earlier one, also
    a form of this package.

    Args:
        kind: The class, or the name of its package and its own name, such as ``duckdb.Relation``,
            if the package is to be imported later. Inputs are loaded by their annotation; a
            returned value may also be of a subclass.
        load: As for `DataForm`. Each dataset has a ``path`` and yields records.
        store: As for `DataForm`.

    Example:
        .. code-block:: python

            class Texts(list):
                pass


            def load(datasets):
                return Texts(record["text"] for dataset in datasets for record in dataset)


            def store(texts):
                return ({"text": text} for text in texts)


            register_form(Texts, load=load, store=store)

    Raises:
        ConfigurationError: ``kind`` is neither, or there is no function.
    """
    form: object = kind
    if not (isinstance(form, type) or (isinstance(form, str) and form.count(".") == 1)):
        raise ConfigurationError("kind", kind, "a class or a name such as 'duckdb.Relation'")
    functions = {"load": load, "store": store}
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise ConfigurationError(name, function, "a function")
    if load is None and store is None:
        raise ConfigurationError("load", None, "a function, or there must be a function store")
    _FORMS[kind] = DataForm(load, store)


def loading_form(kind: Any) -> Load | None:
    """Return the function that loads an input for a class; ``None`` if there is none."""
    form = _form_of(kind)
    return None if form is None else form.load


def storing_form(kind: type) -> Store | None:
    """Return the function that makes records of a value of a class, or of its base class."""
    forms = (_form_of(each) for each in kind.__mro__)
    return next((form.store for form in forms if form is not None and form.store), None)


def loadable() -> list[str]:
    """Return the names of the classes that inputs may have."""
    names = (_name_of(kind) for kind, form in _FORMS.items() if form.load is not None)
    return [name.removeprefix("builtins.").removeprefix("collections.") for name in names]


def _form_of(kind: Any) -> DataForm | None:
    with suppress(TypeError):  # not hashable
        return _FORMS.get(kind) or _FORMS.get(_name_of(kind))
    return None


def _name_of(kind: Any) -> str:
    """Return the package and the name of a class; libraries move classes between their modules."""
    if isinstance(kind, str):
        return kind
    package = str(getattr(kind, "__module__", "")).partition(".")[0]
    return f"{package}.{getattr(kind, '__name__', '')}"


def files_of(datasets: Datasets) -> list[Path]:
    """Return the paths of the files of datasets, in order, without empty files.

    Objects on a store are copied to this machine first.
    """
    paths = [dataset.download().path for dataset in datasets]
    files = (PartedFile(path).paths if path.is_dir() else [path] for path in paths)
    return [file for file in chain.from_iterable(files) if file.stat().st_size]


def records_in(datasets: Datasets) -> Iterator[dict[str, Any]]:
    """Yield the records of datasets, in order."""
    return chain.from_iterable(datasets)


def _only(datasets: Datasets, form: str, instead: str) -> JsonlDataset:
    if len(datasets) == 1:
        return datasets[0]
    reason = f"cannot be one {form}; annotate the input as {instead}"
    raise InputError(f"of {counted(len(datasets), 'partitions')}", reason)


def _path(datasets: Datasets) -> Path:
    """Return the folder of an artefact, or the file of a result."""
    dataset = _only(datasets, "Path", "list[Path] or dict[str, Path]").download()
    try:
        return load_artefact(NodeFolder.of_result(dataset)).path
    except ResultMissingError:
        return dataset.path


def _pandas_frame(datasets: Datasets) -> Any:
    """Return a frame equal to that of a list of all records.

    Columns are collected, not records: that takes 15 % less memory. `pandas.read_json` takes 70 %
    more, and refuses integers over 64 bits and small floats.
    """
    require("pandas", "a pandas.DataFrame input", "pandas")
    import pandas as pd

    columns: dict[str, list[Any]] = {}
    count = 0
    for record in records_in(datasets):
        for name, value in record.items():
            column = columns.get(name)
            if column is None:
                column = columns[name] = []
            if len(column) < count:
                column.extend([_MISSING] * (count - len(column)))
            column.append(value)
        count += 1
    for column in columns.values():
        column.extend([_MISSING] * (count - len(column)))
    return pd.DataFrame(columns, index=pd.RangeIndex(count))


def _pandas_records(frame: Any) -> Iterator[Any]:
    _check_names(frame.columns)
    for start in range(0, len(frame), _STORED_ROWS):
        rows = frame.iloc[start : start + _STORED_ROWS]
        known = rows.astype(object).where(rows.notna(), None)  # JSON has no NaN
        yield from known.to_dict(orient="records")


def _polars_lazy(datasets: Datasets) -> Any:
    """Return a frame that polars reads from the files; columns are joined by name and widened."""
    require("polars", "a polars.LazyFrame input", "polars")
    import polars as pl

    frames = [pl.scan_ndjson(file, infer_schema_length=None) for file in files_of(datasets)]
    if len(frames) > 1:
        return pl.concat(frames, how="diagonal_relaxed")
    return frames[0] if frames else pl.LazyFrame()


def _polars_frame(datasets: Datasets) -> Any:
    require("polars", "a polars.DataFrame input", "polars")
    import polars as pl

    try:
        return _polars_lazy(datasets).collect()
    except pl.exceptions.PolarsError as error:
        said = str(error).partition("\n")[0]
        reason = f"is refused by polars: {said}; annotate the input as list[dict] or JsonlDataset"
        raise InputError(_places(datasets), reason) from error


def _places(datasets: Datasets) -> str:
    more = f" and {len(datasets) - 1:,} more" if len(datasets) > 1 else ""
    return f"{datasets[0].location!s}{more}" if datasets else "of no partitions"


def _table(datasets: Datasets) -> "pa.Table":
    require("pyarrow", "a pyarrow.Table input", "arrow")
    from dagster_dataops.assets.inputs.arrow_forms import table_of  # pyarrow

    return table_of(datasets)


def _batch_reader(datasets: Datasets) -> Any:
    require("pyarrow", "a pyarrow.RecordBatchReader input", "arrow")
    from dagster_dataops.assets.inputs.arrow_forms import reader_of  # pyarrow

    return reader_of(datasets)


def _arrow_dataset(datasets: Datasets) -> Any:
    table = _table(datasets)
    import pyarrow.dataset as ds

    return ds.dataset(table)


def _arrow_records(table: Any) -> Iterator[Any]:
    """Yield the records of a table, a batch, a reader of batches or a dataset."""
    import pyarrow as pa

    _check_names(table.schema.names)
    if isinstance(table, pa.RecordBatch):
        batches: Iterable[Any] = [table]
    else:
        batches = table if isinstance(table, pa.RecordBatchReader) else table.to_batches()
    for batch in batches:
        yield from batch.to_pylist()


def _check_names(names: Iterable[Any]) -> None:
    """Check that each column has its own name: a record has one value for each."""
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            raise InputError(f"column {name!r}", "occurs twice in the value; rename one of them")
        seen.add(name)


def _hugging_face(datasets: Datasets) -> Any:
    require("datasets", "a datasets.Dataset input", "huggingface")
    import datasets as hf

    return hf.Dataset(_table(datasets))


def _hugging_face_stream(datasets: Datasets) -> Any:
    require("datasets", "a datasets.IterableDataset input", "huggingface")
    import datasets as hf

    return hf.IterableDataset.from_generator(records_in, gen_kwargs={"datasets": datasets})


_FORMS: Final[dict[type | str, DataForm]] = {
    "builtins.list": DataForm(lambda datasets: list(records_in(datasets))),
    "collections.Sequence": DataForm(lambda datasets: list(records_in(datasets))),
    "collections.Iterator": DataForm(records_in),
    "collections.Iterable": DataForm(records_in),
    "collections.Generator": DataForm(lambda datasets: (record for record in records_in(datasets))),
    "pathlib.Path": DataForm(_path),
    "pandas.DataFrame": DataForm(_pandas_frame, _pandas_records),
    "polars.DataFrame": DataForm(_polars_frame, lambda frame: frame.iter_rows(named=True)),
    "polars.LazyFrame": DataForm(_polars_lazy, lambda frame: frame.collect().iter_rows(named=True)),
    "pyarrow.Table": DataForm(_table, _arrow_records),
    "pyarrow.RecordBatchReader": DataForm(_batch_reader, _arrow_records),
    "pyarrow.Dataset": DataForm(_arrow_dataset, _arrow_records),
    "pyarrow.RecordBatch": DataForm(None, _arrow_records),
    "datasets.Dataset": DataForm(_hugging_face),
    "datasets.IterableDataset": DataForm(_hugging_face_stream),
}
