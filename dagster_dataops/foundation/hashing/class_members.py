"""Tell the members of a class that its author wrote from those that Python or a library adds."""

import abc
import dataclasses
import enum
import functools
import typing
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final, NamedTuple

_METHODS: Final = (FunctionType, staticmethod, classmethod, property)
_SLOTS: Final = (MemberDescriptorType, GetSetDescriptorType)
_DATA: Final = (str, bytes, int, float, bool, type(None), list, tuple, dict, set, frozenset)
_LIBRARIES: Final = ("__pydantic_", "__attrs_", "__dataclass_", "__dataops_", "__sqlalchemy_")
_OF_PYTHON: Final = frozenset(
    {"__annotate__", "__annotate_func__", "__annotations_cache__", "__static_attributes__"}
    | {"__slotnames__", "__protocol_attrs__", "__non_callable_proto_members__"}
    | {"__callable_proto_members_only__", "__final__", "__deprecated__", "__no_type_check__"}
    | {"__firstlineno__", "__type_params__", "__orig_bases__", "__classcell__"}
)
_OF_PYDANTIC: Final = frozenset(
    {"__class_vars__", "__private_attributes__", "__signature__", "__fields_set__", "__fields__"}
)
# How an operator divides its work; the result is the same.
_OF_PARTITIONS: Final = frozenset({"__dataops_partitioning__", "__dataops_regrouping__"})
# What `dataclasses.field` sets by default.
_PLAIN_FIELD: Final = {
    "default_factory": dataclasses.MISSING,
    "init": True,
    "repr": True,
    "hash": None,
    "compare": True,
    "kw_only": False,
}


_T = typing.TypeVar("_T")


@functools.cache
def _generated() -> frozenset[str]:
    """Return the names of members that Python or a decorator adds to a class."""

    @dataclasses.dataclass(order=True, slots=True)
    class Sample(abc.ABC):
        text: str

    class Pair(NamedTuple):
        text: str

    class Typed(typing.TypedDict):
        text: str

    class Kind(enum.Flag):
        ONE = 1

    class Port(typing.Protocol[_T]):
        text: _T

    samples = (Sample, Pair, Typed, Kind, Port, object, type)
    return _OF_PYTHON.union(_OF_PYDANTIC, *map(vars, samples))


def is_special(name: str) -> bool:
    """Return whether a name begins and ends with an underscore, as those that Python adds."""
    return name.startswith("_") and name.endswith("_")


def is_slot(value: Any) -> bool:
    """Return whether a member is a descriptor that Python makes of a slot."""
    return issubclass(type(value), _SLOTS)


def is_written(name: str, value: Any) -> bool:
    """Return whether a member with such a name was written by the author of the class.

    Methods are. Other values are, if they are data and no class has one under that name by itself.
    """
    if name in _OF_PYTHON or name in _OF_PARTITIONS or is_slot(value):
        return False
    if issubclass(type(value), _METHODS):
        return True
    return name not in _generated() and not name.startswith(_LIBRARIES) and type(value) in _DATA


def field_details(cls: type) -> list[tuple[str, dict[str, Any]]]:
    """Return what is set for the fields of a class beside their annotations and defaults.

    A default is an attribute of the class; in a class with slots it is a default of ``__init__``.
    Of pydantic, the default of a field is in no attribute.
    """
    attributes = vars(cls)
    details = [
        *(
            (name, _of_dataclass(field))
            for name, field in (attributes.get("__dataclass_fields__") or {}).items()
        ),
        *(
            (attribute.name, dict(attribute.metadata))
            for attribute in attributes.get("__attrs_attrs__") or ()
        ),
        *(
            (name, _of_pydantic(field))
            for name, field in (attributes.get("__pydantic_fields__") or {}).items()
        ),
    ]
    details.append(("of the class", _of_class(cls)))
    return [(name, details) for name, details in details if details]


def _of_class(cls: type) -> dict[str, Any]:
    """Return the keywords of a class statement that leave their mark in generated names alone."""
    settings: dict[str, Any] = {}
    if vars(cls).get("__total__") is False:  # a TypedDict
        settings["total"] = False
    boundary = vars(cls).get("_boundary_")
    if issubclass(cls, enum.Flag) and boundary not in {None, enum.FlagBoundary.STRICT}:
        settings["boundary"] = str(boundary)
    return settings


def _of_dataclass(field: "dataclasses.Field[Any]") -> dict[str, Any]:
    shown = {name: getattr(field, name, plain) for name, plain in _PLAIN_FIELD.items()}
    details = {name: value for name, value in shown.items() if value is not _PLAIN_FIELD[name]}
    return details | ({"metadata": dict(field.metadata)} if field.metadata else {})


def _of_pydantic(field: Any) -> dict[str, Any]:
    """Return what the JSON schema does not tell: objects, functions and the order of entries."""
    names = ("default", "default_factory", "json_schema_extra")
    values = {name: getattr(field, name, None) for name in names}
    in_schema = (str, int, float, bool, type(None))
    unset = "PydanticUndefinedType"
    return {
        name: value
        for name, value in values.items()
        if type(value) not in in_schema and type(value).__name__ != unset
    }
