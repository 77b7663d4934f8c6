"""`TypedSamples`: make the samples of datasets that declare their type."""

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import xxhash

from dagster_dataops.errors import CookerError
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.options.signature import nearest
from dagster_dataops.training.cooking import samples
from dagster_dataops.training.cooking.samples import Sample, basic_sample_keys
from dagster_dataops.training.decoding.sample_decoder import (
    Decoder,
    SampleDecoder,
    decoded_parts,
)
from dagster_dataops.training.filestores.energon.declared_samples import DeclaredSamples, value_at

_OWN_MODULES: Final = ("dagster_dataops", "dagster_dataops.crude", "megatron.energon")


class TypedSamples:
    """Makes a sample of the declared type of each crude sample. It can be pickled.

    Making one imports the module of the class, and runs the Python files in the folder of the
    dataset that ``sample_loader`` and ``part_filter`` name.

    Args:
        declared: How the samples are made.
        decoder: Makes the values of their parts; ``None`` for bytes, ``auto`` for `SampleDecoder`.
        place: The dataset, for messages.

    Raises:
        CookerError: There is no such class or function, or a field of the class is not mapped.
        MissingExtraError: A package is missing that the parts need.
    """

    def __init__(self, declared: DeclaredSamples, decoder: Decoder, place: str) -> None:
        self.declared, self._decoder, self._place = declared, decoder, place
        self._values: Any = SampleDecoder() if decoder == "auto" else decoder
        self._kind = self._class()
        self._loader = self._function(declared.loader) if declared.loader else None
        self._wanted = self._filter()
        if not declared.loader:
            self._check_fields()
            if isinstance(self._values, SampleDecoder):
                self._values.check(declared.parts or ())

    @property
    def __name__(self) -> str:
        """The name of the class."""
        return self.declared.name

    @property
    def code(self) -> list[Callable[..., Any]]:
        """The functions of the dataset."""
        part_filter = self._wanted if isinstance(self.declared.part_filter, str) else None
        return [function for function in (self._loader, part_filter) if function is not None]

    def _class(self) -> type[Sample]:
        module, name = self.declared.module, self.declared.name
        is_own = module in _OWN_MODULES
        kind = getattr(samples if is_own else self._imported(module), name, None)
        if not (isinstance(kind, type) and issubclass(kind, Sample)):
            reason = f"{module} has no class of samples {name!r}{_known(name) if is_own else ''}"
            raise CookerError(f"{self._place}: {reason}")
        return kind

    def _imported(self, module: str) -> ModuleType:
        try:
            return importlib.import_module(module)
        except ImportError as error:
            raise CookerError(f"{self._place}: {module} cannot be imported: {error}") from error

    def _filter(self) -> Callable[[str], Any] | None:
        """Return the predicate of the parts that are used; ``None`` for all."""
        part_filter = self.declared.part_filter
        if isinstance(part_filter, str):
            return self._function(part_filter)
        parts = self.declared.parts
        return None if parts is None else parts.__contains__

    def _function(self, text: str) -> Callable[..., Any]:
        file, _, name = text.rpartition(":")
        path = Path(self.declared.folder, file)
        try:
            loaded = getattr(_module_at(str(path), path.stat().st_mtime_ns), name, None)
        except Exception as error:
            raise CookerError(f"{self._place}: {path} cannot be loaded: {error!r}") from error
        if not callable(loaded):
            raise CookerError(f"{self._place}: {path} has no function {name!r}")
        function: Callable[..., Any] = loaded
        return function

    def _check_fields(self) -> None:
        kind, declared_fields = self._kind, self.declared.fields
        unknown = next((name for name in declared_fields if name not in kind.field_types()), None)
        missing = next(
            (name for name in kind.required_fields() if name not in declared_fields), None
        )
        if unknown is None and missing is None:
            return
        fault = f"has {unknown!r}, which is none" if unknown else f"lacks {missing!r}, which is one"
        fields = ", ".join(kind.field_types())
        reason = f"field_map {fault} of the fields of {kind.__name__}: {fields}"
        raise CookerError(f"{self._place}: {reason}")

    def __call__(self, sample: dict[str, Any]) -> Sample:
        """Return the sample of the declared type."""
        wanted, decoder = self._wanted, self._values
        parts = {
            name: value
            for name, value in sample.items()
            if wanted is None or name.startswith("__") or wanted(name)
        }
        if decoder is not None:
            parts = decoded_parts(parts, decoder)
        keys = basic_sample_keys(sample)
        return self._kind(**{"__key__": keys.pop("__key__"), **self._fields(parts), **keys})

    def _fields(self, parts: dict[str, Any]) -> Mapping[str, Any]:
        if self._loader is None:
            return {name: value_at(parts, ways) for name, ways in self.declared.fields.items()}
        fields: object = self._loader(parts)
        if isinstance(fields, Mapping):
            return fields
        kind = type(fields).__name__
        msg = f"{self.declared.loader} returned a {kind}; it must return a dict of fields"
        raise TypeError(msg)

    @override
    def __reduce__(self) -> Any:
        return TypedSamples, (self.declared, self._decoder, self._place)


def _known(name: str) -> str:
    known = [name_ for name_, kind in vars(samples).items() if _is_sample_class(kind)]
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near else f"; those of Energon: {', '.join(known)}"


def _is_sample_class(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Sample) and kind is not Sample


@cache
def _module_at(path: str, changed: int) -> ModuleType:  # noqa: ARG001 - a changed file is read again
    """Run the code of a file, and return its module."""
    name = f"dataset_code_{xxhash.xxh3_64_hexdigest(path.encode())}"
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module  # dataclasses and pickle look up the module of a class
    exec(compile(Path(path).read_bytes(), path, "exec"), vars(module))  # noqa: S102 - as declared
    return module
