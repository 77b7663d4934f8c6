"""`Sample`: records with declared fields; `edataclass` declares further ones."""

import copy
import dataclasses
import inspect
import typing
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, Self, dataclass_transform
from weakref import WeakKeyDictionary

from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.options.signature import nearest
from dagster_dataops.records import SOURCES
from dagster_dataops.training.filestores.source_info import SourceInfo

KEYS: Final = ("__key__", "__restore_key__", "__subflavors__", SOURCES)
"""The keys that a record takes over from its sample."""


def basic_sample_keys(
    sample: Mapping[str, Any], additional_source_info: Iterable[SourceInfo] = ()
) -> dict[str, Any]:
    """Return key, restore key, subflavors and sources of a sample, to pass them on to a record.

    Call it after all auxiliary files were read, so that ``__sources__`` holds them.

    Args:
        sample: A crude sample or a record.
        additional_source_info: Further sources.
    """
    kept = {name: sample[name] for name in KEYS if name in sample}
    added = list(additional_source_info)
    if added:
        kept[SOURCES] = [*(kept.get(SOURCES) or ()), *added]
    return kept


class _NoDefault:
    """A field without a default."""


class _Absent:
    """The default of a field that a sample may lack."""


class _DataclassFields:
    """The fields of a class of samples, as the functions of `dataclasses` look them up."""

    def __init__(self) -> None:
        self._described: WeakKeyDictionary[type[Sample], dict[str, Any]] = WeakKeyDictionary()

    def __get__(self, _: object, kind: type["Sample"]) -> dict[str, Any]:
        fields = self._described.get(kind)
        if fields is None:
            fields = self._described[kind] = kind.dataclass_fields()
        return fields


class Sample(dict[str, Any]):
    """A record with declared fields, which are keys and attributes.

    Besides its fields a sample has the keys of `basic_sample_keys`. Subclasses declare fields by
    annotations; `edataclass` may decorate them, as Energon's classes are. `dataclasses.fields`,
    ``asdict`` and ``replace`` take them, too.

    Raises:
        TypeError: A field is unknown or missing. For a class: a field has the name of a method or
            another attribute, such as ``values`` or ``items`` of dicts, which would hide its value.
    """

    __slots__ = ()
    _declared: ClassVar[dict[str, Any]] = {}
    __dataclass_fields__: ClassVar[Any] = _DataclassFields()
    __dataclass_params__: ClassVar[Any] = dataclasses.make_dataclass("Any", []).__dataclass_params__  # type: ignore[attr-defined]

    @override
    def __init_subclass__(cls, **keywords: Any) -> None:
        """Take the annotations of the class as its fields."""
        super().__init_subclass__(**keywords)
        defaults = {}
        for name in inspect.get_annotations(cls):
            if name not in KEYS and not name.startswith("_"):
                defaults[name] = cls.__dict__.get(name, _NoDefault)
                if name in cls.__dict__:
                    delattr(cls, name)
                _check_not_hidden(cls, name)
        cls._declared = {**cls._declared, **defaults}

    def __init__(self, *values: Any, **fields: Any) -> None:
        if values:
            fields = {**self._by_place(values), **fields}
        declared = self._declared
        for name in fields:
            if name not in declared and name not in KEYS:
                raise TypeError(self._unknown(name))
        for name, default in declared.items():
            if name not in fields and default is not _Absent:
                fields[name] = self._default(name, default)
        super().__init__(fields)

    def _by_place(self, values: tuple[Any, ...]) -> dict[str, Any]:
        if len(values) == 1 and isinstance(values[0], Mapping) and type(self) is Sample:
            return dict(values[0])
        if len(values) > len(self._declared):
            fields = counted(len(self._declared), "fields")
            msg = f"{type(self).__name__} has {fields}, not {len(values)}"
            raise TypeError(msg)
        return dict(zip(self._declared, values, strict=False))

    def _default(self, name: str, default: Any) -> Any:
        if default is _NoDefault:
            msg = f"{type(self).__name__} has no value for its field {name!r}"
            raise TypeError(msg)
        if isinstance(default, dataclasses.Field):
            if default.default_factory is not dataclasses.MISSING:
                return default.default_factory()
            if default.default is dataclasses.MISSING:
                return self._default(name, _NoDefault)
            return default.default
        return default

    def _unknown(self, name: str) -> str:
        near = nearest(name, list(self._declared))
        hint = f"; did you mean {near!r}?" if near else "."
        fields = ", ".join(self._declared) or "none"
        return f"{type(self).__name__} has no field {name!r}{hint} Its fields: {fields}"

    @classmethod
    def field_types(cls) -> dict[str, Any]:
        """Return the annotated type of each field."""
        try:
            hints = typing.get_type_hints(cls)
        except NameError:  # for example, names imported under TYPE_CHECKING
            hints = {}
        return {name: hints.get(name, Any) for name in cls._declared}

    @classmethod
    def dataclass_fields(cls) -> dict[str, Any]:
        """Return the fields as `dataclasses` describes them, by name."""
        fields: list[tuple[str, Any, Any]] = [
            (name, Any, dataclasses.field(default=None)) for name in KEYS
        ]
        for name, default in cls._declared.items():
            if default is not _Absent:
                known = {} if default is _NoDefault else {"default": default}
                is_field = isinstance(default, dataclasses.Field)
                described = copy.copy(default) if is_field else dataclasses.field(**known)
                fields.append((name, Any, described))
        described = dataclasses.make_dataclass(cls.__name__, fields, kw_only=True)
        return {field.name: field for field in dataclasses.fields(described)}

    @classmethod
    def required_fields(cls) -> list[str]:
        """Return the fields without a default."""
        return [name for name, default in cls._declared.items() if _is_required(default)]

    @classmethod
    def derive_from(cls, base: Mapping[str, Any], **fields: Any) -> Self:
        """Return a sample with the keys of another one and new fields.

        Args:
            base: The sample whose ``__key__``, ``__restore_key__``, ``__subflavors__`` and
                ``__sources__`` are taken over.
            **fields: The fields.
        """
        return cls(**{**basic_sample_keys(base), **fields})

    @classmethod
    def extend(cls, src: Mapping[str, Any], **fields: Any) -> Self:
        """Return a sample with the fields and keys of another one, and further fields.

        Args:
            src: The sample, of a class that this one inherits from.
            **fields: The further fields; they replace those of ``src``.
        """
        return cls(**{**src, **fields})

    @classmethod
    def from_joined(cls, *samples: Mapping[str, Any] | None) -> Self:
        """Return a sample with the fields of joined samples; those of later ones win.

        Args:
            *samples: The samples, as a metadataset joins them; ``None`` is one that is missing.
        """
        return cls(**_joined_fields(samples))

    def __getattr__(self, name: str) -> Any:
        """Return the value of a field."""
        try:
            return self[name]
        except KeyError:
            if name in KEYS:
                return None
            msg = f"{type(self).__name__} has no field {name!r}"
            raise AttributeError(msg) from None

    @override
    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._declared and name not in KEYS:
            raise AttributeError(self._unknown(name))
        self[name] = value

    @override
    def __reduce__(self) -> Any:
        return _restored, (type(self), dict(self))

    @override
    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.items())
        return f"{type(self).__name__}({fields})"


def _check_not_hidden(kind: type[Sample], name: str) -> None:
    """Check that no class that a class inherits from has an attribute of the name of a field."""
    owner = next((base for base in kind.__mro__ if name in vars(base)), None)
    if owner is not None:
        msg = (
            f"{kind.__name__} declares the field {name!r}, but {name} is an attribute of "
            f"{owner.__name__}, which would hide the value; give the field another name"
        )
        raise TypeError(msg)


def _is_required(default: Any) -> bool:
    if isinstance(default, dataclasses.Field):
        missing = dataclasses.MISSING
        return default.default is missing and default.default_factory is missing
    return default is _NoDefault


def _restored(kind: type[Sample], values: dict[str, Any]) -> Sample:
    sample = kind.__new__(kind)
    sample.update(values)
    return sample


def _joined_fields(samples: Iterable[Mapping[str, Any] | None]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for sample in samples:
        sample_fields = {
            name: value for name, value in (sample or {}).items() if not name.startswith("__")
        }
        fields |= sample_fields
    return fields


@dataclass_transform(kw_only_default=True)
def edataclass(kind: type) -> Any:
    """Declare a class of samples: its annotations are its fields.

    A class that does not inherit from `Sample` becomes a `Sample`, too. It is a dict, so JSON and
    operators take it as a record.
    """
    if issubclass(kind, Sample):
        return kind
    namespace = {
        name: value
        for name, value in kind.__dict__.items()
        if name not in {"__dict__", "__weakref__"}
    }
    bases = tuple(base for base in kind.__bases__ if base is not object)
    return type(kind.__name__, (*bases, Sample), namespace)


class TextSample(Sample):
    """A text, and perhaps a second one, such as a lazy file of an auxiliary store."""

    text: str
    secondary_text: Any = _Absent


class CaptioningSample(Sample):
    """An image and its caption."""

    image: Any
    caption: str


class VQASample(Sample):
    """An image, a question about it, and answers."""

    image: Any
    context: str
    answers: list[str] | None = None
    answer_weights: list[float] | None = None


class OCRSample(Sample):
    """An image and its text."""

    image: Any
    text: str
    block_boxes: Any = None
    block_classes: Any = None
    block_text: Any = None
    lines_boxes: Any = None
    lines_text: Any = None
    words_boxes: Any = None
    words_text: Any = None
    chars_boxes: Any = None
    chars_text: Any = None


class InterleavedSample(Sample):
    """Texts and images in one sequence."""

    sequence: list[Any]


class ImageSample(Sample):
    """An image."""

    image: Any


class ImageClassificationSample(Sample):
    """An image and its class."""

    image: Any
    label: int | None = None
    label_name: str | None = None


class MultiChoiceVQASample(Sample):
    """An image, a question about it, possible answers and the number of the right one."""

    image: Any
    context: str
    choices: list[str] | None = None
    correct_choice_idx: int = 0


class SimilarityInterleavedSample(Sample):
    """Images and texts whose order follows from a matrix of similarities."""

    images: list[Any]
    texts: list[str]
    audio: list[Any] | None = None
    video: list[Any] | None = None
    similarity_matrix: Any = None
    matched_text_indices: list[int] | None = None


class VidQASample(Sample):
    """A film, a question about it, and answers."""

    video: Any
    context: str
    answers: list[str] | None = None
    answer_weights: list[float] | None = None


class CrudeSample(dict[str, Any]):
    """A sample as it was read: its keys, and the bytes of each part by suffix."""

    @classmethod
    def from_joined(cls, *samples: Mapping[str, Any] | None) -> Self:
        """Return a sample with the parts of joined samples; those of later ones win.

        Args:
            *samples: The samples, as a metadataset joins them; ``None`` is one that is missing.
        """
        return cls(_joined_fields(samples))
