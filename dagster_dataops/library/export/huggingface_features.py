"""Features of Hugging Face datasets without a type of Arrow: class labels, JSON and files."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from dagster_dataops.datasets.exporters.exporter import UnfitValueError
from dagster_dataops.datasets.exporters.parquet_table import checked_schema
from dagster_dataops.errors import DefinitionError

_JSON: Final = "json"
FILE: Final = "file"
_EXTENSION: Final = {"ARROW:extension:name": "arrow.json", "ARROW:extension:metadata": ""}
_OF_FILES: Final = {"image": "Image", "audio": "Audio", "video": "Video", "pdf": "Pdf"}
_LISTED: Final = re.compile(r"\w+(?=>?$)")  # the type of a file, also in a list
_UNKNOWN: Final = -1  # a class label that `datasets` takes for none


class Features:
    """The features of columns, given by name.

    Args:
        given: An Arrow type such as ``list<int32>``, ``json``, or the names of classes, by column;
            for a column that names files ``image``, ``audio``, ``video`` or ``pdf``, also as a list
            such as ``list<image>``.

    Attributes:
        schema: Arrow types by column, for `write_batches`.
    """

    def __init__(self, features: Mapping[str, str | Sequence[str]] | None) -> None:
        known: object = {} if features is None else features
        if not isinstance(known, Mapping):
            msg = f"features is {features!r}; it must map columns to types or to names of classes"
            raise DefinitionError(msg)
        texts = {name: kind for name, kind in known.items() if isinstance(kind, str)}
        self._of_files = {
            name: feature for name, kind in texts.items() if (feature := _of_files(kind))
        }
        files = {name: _LISTED.sub(FILE, texts[name]) for name in self._of_files}
        self.schema = checked_schema(texts | files)
        self._json = [name for name, kind in texts.items() if kind == _JSON]
        self._classes = {
            name: _checked_classes(name, kind)
            for name, kind in known.items()
            if not isinstance(kind, str)
        }

    def __bool__(self) -> bool:
        return bool(self._json or self._classes or self._of_files)

    def described(self, schema: Any) -> Any:
        """Return a schema with the features."""
        import pyarrow as pa

        fields = []
        for field in schema:
            if field.name in self._json:
                field = pa.field(field.name, pa.string(), metadata=_EXTENSION)  # noqa: PLW2901
            elif field.name in self._classes:
                field = pa.field(field.name, pa.int64())  # noqa: PLW2901
            fields.append(field)
        features: dict[str, Any] = {name: {"_type": "Json"} for name in self._json}
        features |= self._of_files
        features |= {
            name: {"names": names, "_type": "ClassLabel"} for name, names in self._classes.items()
        }
        known = {name: features[name] for name in schema.names if name in features}
        facts = orjson.dumps({"info": {"features": known}})
        return pa.schema(fields, metadata={"huggingface": facts})

    def applied(self, schema: Any, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield batches with the numbers of classes in place of their names."""
        import pyarrow as pa

        start = 0
        for batch in batches:
            columns = [
                self._numbers(start, field.name, column) if field.name in self._classes else column
                for field, column in zip(schema, batch.columns, strict=True)
            ]
            start += batch.num_rows
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _numbers(self, start: int, name: str, values: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        names = self._classes[name]
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            numbers = pc.index_in(values, pa.array(names, values.type)).cast(pa.int64())
        elif pa.types.is_integer(values.type) or pa.types.is_null(values.type):
            numbers = values.cast(pa.int64())
            known = pc.and_(
                pc.greater_equal(numbers, _UNKNOWN), pc.less(numbers, pa.scalar(len(names)))
            )
            numbers = pc.if_else(known, numbers, None)
        else:
            numbers = pa.nulls(len(values), pa.int64())
        wrong = pc.and_(values.is_valid(), numbers.is_null())
        at = pc.index(wrong, value=True).as_py()
        if at >= 0:
            shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            problem = f"it holds {values[at].as_py()!r}, and the classes are {shown}"
            remedy = "Add the class to features, or drop such records before."
            raise UnfitValueError(start + at, name, problem, remedy)
        return numbers


def _of_files(kind: str) -> dict[str, Any] | None:
    """Return the feature of a column that names files; ``None`` for other types."""
    name = kind.removeprefix("list<").removesuffix(">")
    if name not in _OF_FILES:
        return None
    of_file = {"_type": _OF_FILES[name]}
    return of_file if kind == name else {"_type": "List", "feature": of_file}


def _checked_classes(name: str, names: object) -> list[str]:
    """Check the names of classes, and return them."""
    if isinstance(names, Sequence) and names and all(isinstance(label, str) for label in names):
        classes = [str(label) for label in names]
        if len(set(classes)) == len(classes):
            return classes
    msg = (
        f"features gives column {name!r} {names!r}; use a type such as 'list<int32>', 'json', "
        "or a list of the names of its classes, each different"
    )
    raise DefinitionError(msg)
