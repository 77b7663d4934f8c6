"""`DeclaredSamples`: how a ``dataset.yaml`` declares that samples are made of parts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.confined_names import confined
from dagster_dataops.streams.files.remote import is_url

_EXPRESSION: Final = re.compile(r"([^\[\]]+)((?:\[[^\[\]]+\])*)")
_ELEMENT: Final = re.compile(r"\[([^\[\]]+)\]")

Steps: TypeAlias = tuple[str, ...]
"""A part, and the keys or numbers that lead to the value within it."""


def alternatives(expression: str) -> tuple[Steps, ...]:
    """Return the ways to a value, in the order in which they are tried.

    ``png`` names a part, ``json[caption]`` an element of a part, ``json[boxes][0]`` an element of
    an element, and ``png,jpg`` the first of these parts that the sample has.
    """
    choices = []
    for text in expression.split(","):
        match = _EXPRESSION.fullmatch(text.strip())
        if match is None:
            msg = f"{expression!r} is no place in a sample; write a part, or such as json[caption]"
            raise ValueError(msg)
        choices.append((match[1], *_ELEMENT.findall(match[2])))
    return tuple(choices)


def value_at(sample: Mapping[str, Any], ways: Sequence[Steps]) -> Any:
    """Return the first value that a sample has."""
    for way in ways:
        try:
            return _followed(sample, way)
        except (LookupError, ValueError, TypeError):
            continue
    wanted = " or ".join(_shown(way) for way in ways)
    parts = ", ".join(name for name in sample if not name.startswith("__")) or "none"
    msg = f"sample {sample.get('__key__')!r} has no {wanted}; its parts: {parts}"
    raise KeyError(msg)


def _followed(value: Any, way: Steps) -> Any:
    for step in way:
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def _shown(way: Steps) -> str:
    return way[0] + "".join(f"[{step}]" for step in way[1:])


OF_TYPE: Final = ("sample_type", "field_map", "sample_loader")
"""The keys of ``dataset.yaml`` that crude datasets do not have."""

_FACTORY: Final = "Webdataset"  # the end of the names of Energon's classes of datasets


@dataclass(frozen=True)
class DeclaredSamples:
    """The class of the samples of a dataset, and what makes its fields.

    Attributes:
        module: The module of the class.
        name: The name of the class.
        field_map: The expression of each field, such as ``json[caption]``; empty with ``loader``.
        loader: ``file.py:function``, called with the values of the parts; empty without.
        part_filter: ``file.py:function`` of the name of a part, or the parts that the loader gets;
            ``None`` for all.
        folder: The folder of the files; empty without ``loader``.
    """

    module: str
    name: str
    field_map: Mapping[str, str]
    loader: str = ""
    part_filter: str | tuple[str, ...] | None = None
    folder: str = ""

    @cached_property
    def fields(self) -> dict[str, tuple[Steps, ...]]:
        """The ways to the value of each field of ``field_map``.

        Raises:
            ValueError: An expression is malformed.
        """
        return {name: alternatives(text) for name, text in self.field_map.items()}

    @property
    def parts(self) -> frozenset[str] | None:
        """The parts that are used; ``None`` if only functions know them."""
        if self.loader:
            return frozenset(self.part_filter) if isinstance(self.part_filter, tuple) else None
        return frozenset(way[0] for ways in self.fields.values() for way in ways)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON."""
        filtered = self.part_filter
        return {
            "class": [self.module, self.name],
            "field_map": dict(self.field_map),
            "loader": self.loader,
            "part_filter": list(filtered) if isinstance(filtered, tuple) else filtered,
            "folder": self.folder,
        }

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> "DeclaredSamples":
        """Return what `plain` made JSON of."""
        module, name = plain["class"]
        filtered = plain["part_filter"]
        return cls(
            module,
            name,
            dict(plain["field_map"]),
            plain["loader"],
            tuple(filtered) if isinstance(filtered, list) else filtered,
            plain["folder"],
        )


def declared_samples(document: Mapping[str, Any], path: str) -> DeclaredSamples | None:
    """Return what the content of the ``dataset.yaml`` at a path says; ``None`` for a crude dataset.

    Raises:
        InputError: A key is missing, or has an invalid value.
        PathEscapeError: The file of a function is not in the folder of ``dataset.yaml``.
    """
    if "sample_type" in document:
        kind = document["sample_type"]
        if not isinstance(kind, Mapping) or not {"__module__", "__class__"} <= set(kind):
            raise InputError(path, "sample_type needs __module__ and __class__")
        module, name = str(kind["__module__"]), str(kind["__class__"])
    else:
        module, name = str(document.get("__module__", "")), str(document.get("__class__", ""))
        if name in {"", f"Crude{_FACTORY}"}:
            _check_crude(document, path)
            return None
        if not name.endswith(_FACTORY):
            reason = f"is a dataset of {name}; declare sample_type, with __module__ and __class__"
            raise InputError(path, reason)
        name = f"{name.removesuffix(_FACTORY)}Sample"
    return _with_fields(document, path, module, name)


def _check_crude(document: Mapping[str, Any], path: str) -> None:
    key = next((name for name in OF_TYPE if name in document), None)
    if key is not None:
        reason = f"{key} is not allowed in a crude dataset; use a cooker, or declare sample_type"
        raise InputError(path, reason)


def _with_fields(document: Mapping[str, Any], path: str, module: str, name: str) -> DeclaredSamples:
    field_map, loader = document.get("field_map"), document.get("sample_loader")
    if (field_map is None) == (loader is None):
        both = "either field_map or sample_loader, not both" if loader else "no field_map"
        raise InputError(path, f"has {both}: one of them makes the fields of {name}")
    filtered = document.get("part_filter")
    if loader is None:
        if not isinstance(field_map, Mapping) or not all(map(_is_name, field_map.values())):
            raise InputError(path, "field_map must be a mapping of fields to names of parts")
        if filtered is not None:
            raise InputError(
                path, "part_filter belongs to sample_loader; field_map names its parts"
            )
        declared = DeclaredSamples(
            module, name, {str(field): str(at) for field, at in field_map.items()}
        )
        try:
            declared.fields  # noqa: B018 - checks the expressions
        except ValueError as error:
            raise InputError(path, f"field_map: {error}") from None
        return declared
    if is_url(path):
        reason = "sample_loader runs code, so the dataset must be local; copy it, or use a cooker"
        raise InputError(path, reason)
    folder = path.rpartition("/")[0]
    if isinstance(filtered, str):
        parts: str | tuple[str, ...] | None = _function(filtered, "part_filter", path)
    else:
        parts = listed_parts(filtered, path)
    return DeclaredSamples(
        module, name, {}, _function(loader, "sample_loader", path), parts, folder
    )


def listed_parts(value: object, path: str) -> tuple[str, ...] | None:
    """Return the parts that a ``part_filter`` lists; ``None`` without one, for all parts."""
    if value is None:
        return None
    if isinstance(value, list) and all(map(_is_name, value)):
        return tuple(map(str, value))
    raise InputError(path, f"part_filter must be a list of names of parts, not {value!r}")


def _is_name(value: object) -> bool:
    """Return whether a value of YAML is a name: a text, or digits without quotes."""
    return isinstance(value, str) or type(value) is int


def _function(value: object, key: str, path: str) -> str:
    """Return ``file.py:function``; the name of the function may be left out."""
    if not isinstance(value, str):
        raise InputError(path, f"{key} must be the name of a function, such as loader.py:{key}")
    file, _, name = value.rpartition(":") if ":" in value else (value, "", key)
    return f"{confined(file, path)}:{name}"
