"""Code versions: digests of code that change when a function or class is edited.

A digest covers the syntax tree of the function or class (without comments, docstrings and
formatting) and all code of the user's project that it depends on:

- the names that functions use: functions, classes and constants of their module, of the enclosing
  function and of other modules (as ``module.name`` or imported by name); parameter defaults;
- wrappers of functions: decorators with their arguments, ``functools.partial``, callable objects
  with their class and attributes;
- parts of classes: bases, members and annotations, the members of enums, the JSON schema of
  pydantic models;
- modules that a function imports when it runs: the whole module, and the modules it imports.

The project is all code that is not installed. If the operator is installed, it is the packages of
its distribution. Other distributions count by name and version, and Python by its minor version.
Values are taken when the version is first computed, before any record is processed. Objects of
foreign classes count by their class and their public attributes with plain values. Paths inside the
project folder count relative to it. Names that are computed at run time are not followed.
"""

import inspect
import os
import string
import sys
import types
import typing
from array import array
from collections import deque
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import is_dataclass
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property, partial
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, Final, TypeGuard

from typing_extensions import override

from dagster_dataops.hashing.code_origins import ProjectScope, folder_of
from dagster_dataops.hashing.named_references import (
    attributes_named,
    imports_in,
    modules_imported,
    names_in,
)
from dagster_dataops.hashing.source_text import module_tree, text_of, tree_digest
from dagster_dataops.hashing.values import (
    FormBuilder,
    Ignored,
    digest_of_form,
    ignore_nothing,
    read_attribute,
    type_name,
)

_DATES: Final = (date, time, timedelta, tzinfo)
_NUMBERS: Final = (complex, range, Decimal, Fraction, array, deque)
_CALLS: Final = (partial, types.MethodType, attrgetter, itemgetter, methodcaller)
# Foreign classes whose objects count by their content.
_DATA: Final = (*_DATES, *_NUMBERS, *_CALLS, string.Template)
_BUILTIN_CONTAINERS: Final = (dict, set, frozenset, types.MappingProxyType)
# Made by Python 3.14 of the annotations of a class, which count by themselves.
_ANNOTATE: Final = frozenset({"__annotate__", "__annotate_func__"})
_PYTHON: Final = f"python {sys.version_info[0]}.{sys.version_info[1]}"


def code_digest(target: Any, ignored: Ignored = ignore_nothing, home: str = "") -> str:
    """Return the code version of a function or class.

    Args:
        target: The function or class.
        ignored: Returns whether a name of an attribute or constant does not affect the result.
        home: A package that counts by its code even if it is installed; by default the module
            of ``target``.
    """
    at_home = ProjectScope.of_package(home) if home else ProjectScope((), _module_of(target))
    return _CodeForms(ignored, at_home).digest(target)


class _CodeForms(FormBuilder):
    """Collects everything that a function or class depends on.

    Functions and classes are numbered when they are first met and processed one after another.
    Other forms refer to the number, so recursion is never deep.
    """

    def __init__(self, ignored: Ignored, home: ProjectScope) -> None:
        super().__init__(self._reference, ignored)
        self._home = home
        self._numbers: dict[int, int] = {}
        self._queue: list[Any] = []
        self._modules: list[str] = []
        self._folder = ""

    def digest(self, target: Any) -> str:
        """Return the digest of ``target`` and all its dependencies."""
        found: list[Any] = [_PYTHON, self.form(target)]
        for one in self._queue:  # the loops below append to both lists
            self._folder = folder_of(_module_of(one))
            found.append(
                self._class_form(one) if isinstance(one, type) else self._function_form(one)
            )
        found += [self._module_form(name) for name in self._modules]
        return digest_of_form(found)

    def _reference(self, target: Any) -> str:
        origin = self._home.origin(_module_of(target))
        if origin is not None:
            return f"{origin} {_module_of(target)}.{target.__qualname__}"
        if id(target) not in self._numbers:
            self._numbers[id(target)] = len(self._numbers)
            self._queue.append(target)
        return f"#{self._numbers[id(target)]}"

    # ------------------------------------------------------------ functions

    def _function_form(self, function: types.FunctionType) -> Any:
        package = function.__globals__.get("__package__") or ""
        return {
            "name": function.__code__.co_qualname,
            "text": text_of(function),
            "defaults": [self.form(function.__defaults__), self.form(function.__kwdefaults__)],
            "named": {
                name: self._named_value(function.__code__, name, value)
                for name, value in _values_named(function)
                if not self._is_ignored(name, value)
            },
            "attributes": self.form({k: v for k, v in vars(function).items() if k[:2] != "__"}),
            "wrapped": self.form(vars(function).get("__wrapped__")),
            "imports": [
                [name, self._import_reference(name)]
                for name in sorted(imports_in(function.__code__, package))
            ],
        }

    def _is_ignored(self, name: str, value: Any) -> bool:
        return self._ignored(name) and not callable(value)

    def _named_value(self, code: types.CodeType, name: str, value: Any) -> Any:
        if not _is_module(value):
            return self.form(value)
        origin = self._home.origin(value.__name__)
        if origin is not None:
            return origin
        used = sorted(attributes_named(code, name))
        return [[".".join(chain), self._attribute_form(value, chain)] for chain in used]

    def _attribute_form(self, module: types.ModuleType, chain: tuple[str, ...]) -> Any:
        """Return the form of ``module.name`` or ``module.other.name``.

        A module counts as a whole if the used names are unknown.
        """
        for name in chain:
            value = vars(module).get(name)
            if not _is_module(value):
                unknown = name not in vars(module)
                return self._import_reference(module.__name__) if unknown else self.form(value)
            module = value
            origin = self._home.origin(module.__name__)
            if origin is not None:
                return origin
        return self._import_reference(module.__name__)

    # ------------------------------------------------------------ modules

    def _import_reference(self, name: str) -> Any:
        origin = self._home.origin(name)
        if origin is None and name not in self._modules:
            self._modules.append(name)
        return origin or "module"

    def _module_form(self, name: str) -> Any:
        """Return the form of all code of a module."""
        tree = module_tree(name)
        if tree is None:
            return [name, None]
        package = name if hasattr(sys.modules.get(name), "__path__") else name.rpartition(".")[0]
        imports = sorted(modules_imported(tree, package))
        return [name, tree_digest(tree), [[one, self._import_reference(one)] for one in imports]]

    # ------------------------------------------------------------ classes

    def _class_form(self, cls: type) -> Any:
        return {
            "class": cls.__qualname__,
            "kind": self.form(type(cls)),
            "bases": [self.form(base) for base in cls.__bases__],
            "members": {
                name: self._member_form(value)
                for name, value in sorted(vars(cls).items())
                if _is_member(name, value) and not self._is_ignored(name, value)
            },
            "enum": self._members_of_enum(cls),
            "annotations": [
                [name, self.form(one)] for name, one in _annotations(cls) if not self._ignored(name)
            ],
            "schema": self.form(_json_schema(cls)),
        }

    def _members_of_enum(self, cls: type) -> Any:
        if not issubclass(cls, Enum):
            return None
        return [[name, self.form(one.value)] for name, one in cls.__members__.items()]

    def _member_form(self, member: Any) -> Any:
        match None if self._is_proxy(member) else member:
            case staticmethod() | classmethod():
                return [type_name(member), self.form(member.__func__)]
            case property():
                return [self.form(part) for part in (member.fget, member.fset, member.fdel)]
            case cached_property():
                return self.form(member.func)
        return self.form(member)

    # ------------------------------------------------------------ values

    @override
    def _is_proxy(self, value: Any) -> bool:
        """Return whether reading an attribute of an object may run code of its class."""
        return isinstance(type(value).__getattribute__, types.FunctionType) or super()._is_proxy(
            value
        )

    @override
    def atom(self, value: Any) -> Any:
        """Return the form of a plain value; project paths are made relative."""
        if self._folder and isinstance(value, (str, os.PathLike)):
            text = os.fsdecode(value)
            if text == self._folder or text.startswith(self._folder + os.sep):
                return {"below": super().atom(text.removeprefix(self._folder))}
        return super().atom(value)

    @override
    def _composed_form(self, value: Any, depth: int) -> Any:
        mapped = isinstance(value, (Mapping, AbstractSet)) and not isinstance(
            value, _BUILTIN_CONTAINERS
        )
        if mapped and self._home.origin(type(value).__module__) is not None:
            return self.object(value, depth)  # for example os.environ
        return super()._composed_form(value, depth)

    @override
    def object(self, value: Any, depth: int) -> Any:
        """Return the form of a function, type or other object."""
        if isinstance(value, types.FunctionType):
            return self._function_reference(value, depth)
        if isinstance(value, type):
            return self._reference(value)
        if typing.get_origin(value) is not None:
            parts = [typing.get_origin(value), *typing.get_args(value)]
            return {"type": [self.form(one, depth) for one in parts]}
        origin = self._home.origin(type(value).__module__)
        if origin is None or isinstance(value, _DATA) or is_dataclass(value):
            return super().object(value, depth)
        return self._foreign_form(value, depth, origin)

    def _foreign_form(self, value: Any, depth: int, origin: str) -> Any:
        """Return the form of an object whose class is not part of the project."""
        made = {
            "class": self._reference(type(value)),
            "name": read_attribute(value, "__qualname__"),
        }
        module = read_attribute(value, "__module__")
        if isinstance(module, str) and isinstance(made["name"], str):
            made["from"] = self._home.origin(module)
        if isinstance(value, types.BuiltinFunctionType) and not inspect.ismodule(value.__self__):
            made["self"] = self.form(value.__self__, depth)
        if callable(value):
            made["wrapped"] = self.form(read_attribute(value, "__wrapped__"), depth)
        if origin != "python":
            made |= self.public(value, depth, unknown=False)
        return made

    def _function_reference(self, function: types.FunctionType, depth: int) -> Any:
        """Return the form of a function; a foreign function may wrap one of the project."""
        made = {"function": self._reference(function)}
        if self._home.origin(_module_of(function)) is not None:
            around = {name: v for name, v in _cells(function) if self._may_be_project_code(v)}
            wrapped = vars(function).get("__wrapped__")
            made["around"] = digest_of_form([self.form(one, depth) for one in (around, wrapped)])
        return made

    def _may_be_project_code(self, value: Any) -> bool:
        if isinstance(value, dict):  # excludes caches
            return all(map(callable, value.values()))
        plain = isinstance(value, (types.FunctionType, type, str, int, float, *_CALLS))
        return plain or self._home.origin(type(value).__module__) is None


def _is_module(value: object) -> TypeGuard[types.ModuleType]:
    """Return whether ``value`` is a module, without reading an attribute of it."""
    return issubclass(type(value), types.ModuleType)


def _module_of(target: Any) -> str:
    """Return the module that defines a function or class; decorators may change __module__."""
    if isinstance(target, types.FunctionType):
        return str(target.__globals__.get("__name__", ""))
    return str(getattr(target, "__module__", None) or "")


def _values_named(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the global and closure variables that a function uses, with their values."""
    for name in sorted(names_in(function.__code__)):
        dunder = name.startswith("__") and name.endswith("__")  # such as __name__ and __file__
        if name in function.__globals__ and not dunder:
            yield name, function.__globals__[name]
    yield from _cells(function)


def _cells(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # an empty cell: assigned later
            continue


def _is_member(name: str, value: Any) -> bool:
    """Return whether an attribute of a class was written by the class's author."""
    generated = (types.MemberDescriptorType, types.GetSetDescriptorType)
    if name in _ANNOTATE or issubclass(type(value), generated):
        return False
    if name.startswith("_") and name.endswith("_"):  # added by Python or by Enum
        return issubclass(type(value), (types.FunctionType, staticmethod, classmethod, property))
    return name != "_abc_impl"


def _annotations(cls: type) -> list[tuple[str, Any]]:
    try:
        return list(inspect.get_annotations(cls).items())
    except Exception:  # noqa: BLE001 - evaluating annotations may fail
        return []


def _json_schema(cls: type) -> Any:
    """Return the JSON schema of a pydantic model; ``None`` for other classes."""
    make = getattr(cls, "model_json_schema", None)
    if not callable(make):
        return None
    try:
        return make()
    except Exception:  # noqa: BLE001 - some types have no JSON schema
        return None
