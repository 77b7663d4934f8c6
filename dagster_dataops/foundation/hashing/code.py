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
Values are taken when the version is first computed, before any record is processed, by the rules
of `ExactForms`. Of objects of foreign classes, clients count by their public attributes with plain
values, what only reports or synchronizes (loggers, locks, pools) by its class, and all others by
the state that pickle would store. An object that cannot be compared is reported. Paths inside the
project folder count relative to it. Names that are computed at run time are not followed.

A constant that is annotated as `Operational` does not count:
``CLIENT: Annotated[Any, Operational] = connect()``.
"""

import inspect
import os
import sys
import types
import typing
from array import array
from collections import deque
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import is_dataclass
from datetime import date, time, timedelta, tzinfo
from enum import Enum
from functools import cached_property, partial
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, Final, NamedTuple, TypeGuard

from dagster_dataops.foundation.hashing.class_members import (
    field_details,
    is_slot,
    is_special,
    is_written,
)
from dagster_dataops.foundation.hashing.code_origins import ProjectScope, folder_of
from dagster_dataops.foundation.hashing.exact_forms import (
    COUNT_ALL,
    EntryRules,
    ExactForms,
    is_content,
)
from dagster_dataops.foundation.hashing.moved_modules import counted_module
from dagster_dataops.foundation.hashing.named_references import (
    attributes_named,
    imports_in,
    modules_imported,
    names_in,
)
from dagster_dataops.foundation.hashing.operational import is_annotated_operational
from dagster_dataops.foundation.hashing.source_text import module_tree, text_of, tree_digest
from dagster_dataops.foundation.hashing.values import (
    RULES,
    FormBuilder,
    Ignored,
    attributes_of,
    called,
    digest_of_form,
    ignore_nothing,
    read_attribute,
    type_name,
    unordered_digest,
)
from dagster_dataops.foundation.override import override

_DATES: Final = (date, time, timedelta, tzinfo)
_NUMBERS: Final = (complex, range, array, deque)
_CALLS: Final = (partial, types.MethodType, attrgetter, itemgetter, methodcaller)
# Foreign classes whose objects count by their content.
_CONTAINERS: Final = (set, frozenset, tuple)
_DATA: Final = (*_DATES, *_NUMBERS, *_CALLS)
# Further classes of data, by their modules; no value is one before its module is imported.
_DATA_OF_MODULES: Final = {"decimal": "Decimal", "fractions": "Fraction", "string": "Template"}
# Modules whose objects count by their class: they report, synchronize or run work.
_MEANS: Final = frozenset(
    {"logging", "threading", "_thread", "asyncio", "_asyncio", "concurrent", "multiprocessing"}
    | {"signal", "socket", "_socket", "ssl", "_ssl", "selectors", "select", "subprocess"}
    | {"warnings", "wandb", "mlflow", "logfire", "statsd", "datadog", "loguru", "structlog"}
    | {"tqdm", "rich", "prometheus_client", "opentelemetry", "sentry_sdk"}
)
_BOUND: Final = (types.BuiltinFunctionType, types.MethodWrapperType)
# Names of modules that Python sets.
_OF_MODULES: Final = frozenset(
    {"__name__", "__file__", "__doc__", "__package__", "__loader__", "__spec__", "__builtins__"}
    | {"__cached__", "__path__", "__annotations__", "__annotate__", "__dict__", "__all__"}
    | {"__conditional_annotations__", "__warningregistry__"}
)
# Methods that clients, pools and open files have.
_ENDS: Final = ("close", "aclose", "disconnect", "dispose", "shutdown")
_DOCUMENTED: Final = (types.FunctionType, type, types.ModuleType)
_RUNNING: Final = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
# Modules whose objects have a lock and are values nevertheless.
_VALUES: Final = frozenset({"jinja2", "queue", "_queue"})
PYTHON: Final = f"python {sys.version_info[0]}.{sys.version_info[1]}"


class CodeFacts(NamedTuple):
    """What is known of the code of a function or class.

    Attributes:
        digest: The digest of all that can be compared.
        unknown: The constants that cannot be compared, each with its place and class.
    """

    digest: str
    unknown: tuple[str, ...] = ()


def code_digest(target: Any, ignored: Ignored = ignore_nothing, home: str = "") -> str:
    """Return the code version of a function or class.

    Args:
        target: The function or class.
        ignored: Returns whether a name of an attribute or constant does not affect the result.
        home: A package that counts by its code even if it is installed; by default the module
            of ``target``.
    """
    return code_facts(target, ignored, home).digest


def code_facts(
    target: Any,
    ignored: Ignored = ignore_nothing,
    home: str = "",
    entries: EntryRules = COUNT_ALL,
    *,
    older: bool = False,
) -> CodeFacts:
    """Return the code version of a function or class, and what it does not cover.

    Args:
        target: The function or class.
        ignored: As for `code_digest`.
        home: As for `code_digest`.
        entries: How the entries and attributes of constants count.
        older: Whether the digest is that of version 0.2; it is empty if that version left more out
            than the class and the order of containers.
    """
    at_home = ProjectScope.of_package(home) if home else ProjectScope((), module_of(target))
    forms = CodeForms(ignored, at_home, entries, older=older)
    return CodeFacts(forms.digest(target), tuple(sorted(forms.reported)))


class CodeForms(ExactForms):
    """Collects everything that a function or class depends on.

    Functions and classes are numbered when they are first met and processed one after another.
    Other forms refer to the number, so recursion is never deep.

    Attributes:
        reported: The constants that cannot be compared.
    """

    def __init__(
        self, ignored: Ignored, home: ProjectScope, entries: EntryRules, *, older: bool
    ) -> None:
        super().__init__(self._reference, ignored, entries=entries, older=older)
        self.reported: set[str] = set()
        self._home = home
        self._locks = 0
        self._numbers: dict[int, int] = {}
        self._queue: list[Any] = []
        self._modules: list[str] = []
        self._folder = ""

    def digest(self, target: Any) -> str:
        """Return the digest of ``target`` and all its dependencies."""
        forms: list[Any] = [PYTHON, self.form(target)]
        for queued in self._queue:  # the loops below append to both lists
            self._folder = folder_of(module_of(queued))
            forms.append(
                self._class_form(queued)
                if isinstance(queued, type)
                else self._function_form(queued)
            )
            forms += self.rest()
        forms += [self._module_form(name) for name in self._modules]
        if self._older:
            return "" if self.partial else digest_of_form(forms)
        return digest_of_form(forms) + self.rules

    def _reference(self, target: Any) -> str:
        origin = self._home.origin(module_of(target))
        if origin is not None:
            return f"{origin} {counted_module(module_of(target))}.{target.__qualname__}"
        if id(target) not in self._numbers:
            self._numbers[id(target)] = len(self._numbers)
            self._queue.append(target)
        return f"#{self._numbers[id(target)]}"

    # ------------------------------------------------------------ functions

    def _function_form(self, function: types.FunctionType) -> Any:
        package = function.__globals__.get("__package__") or ""
        names = names_in(function.__code__)
        documents = self._documents(function) if "__doc__" in names else None
        return {
            **({"documents": self._exactly(documents)} if documents else {}),
            "name": function.__code__.co_qualname,
            "text": self._text_of(function),
            "defaults": self._defaults(function),
            "named": {
                name: self._named_value(function, name, value)
                for name, value in _values_named(function, names)
                if not self._is_ignored(name, value)
            },
            "attributes": self.form({k: v for k, v in vars(function).items() if k[:2] != "__"}),
            "wrapped": self.form(vars(function).get("__wrapped__")),
            "imports": [
                [name, self._import_reference(name)]
                for name in sorted(imports_in(function.__code__, package))
            ],
        }

    def _documents(self, function: types.FunctionType) -> Any:
        """Return the form of the docstrings that a function can reach by the names it uses."""
        named = [value for _, value in _values_named(function, names_in(function.__code__))]
        documented = [function, *(value for value in named if issubclass(type(value), _DOCUMENTED))]
        return self.form(
            [function.__globals__.get("__doc__"), *(value.__doc__ for value in documented)]
        )

    def _text_of(self, function: types.FunctionType) -> str:
        text = text_of(function)
        return self._exactly(text) if text.endswith(RULES) else text

    def _defaults(self, function: types.FunctionType) -> list[Any]:
        """Return the forms of the defaults; their places and names are part of the text."""
        defaults, named = function.__defaults__, function.__kwdefaults__
        code = function.__code__
        names = code.co_varnames[code.co_argcount - len(defaults or ()) : code.co_argcount]
        forms = [self._named(*default, 0) for default in zip(names, defaults or (), strict=True)]
        entries = self._entries((named or {}).items(), 0, attributes=True)
        return [
            None if defaults is None else {"list": digest_of_form(forms)},
            None if named is None else {"mapping": unordered_digest(entries)},
        ]

    def _is_ignored(self, name: str, value: Any) -> bool:
        return self._ignored(name) and not callable(value)

    def _watched(self, name: str, place: str, value: Any) -> Any:
        """Return the form of a constant; what cannot be compared in it is reported."""
        before, self.unknown = self.unknown, set()
        form = self._named(name, value, 0)
        self.reported |= {f"{name} of {place} (a {kind})" for kind in self.unknown}
        self.unknown |= before
        return form

    def _named_value(self, function: types.FunctionType, name: str, value: Any) -> Any:
        value = called(value)
        if not is_module(value):
            return self._watched(name, module_of(function), value)
        origin = self._home.origin(value.__name__)
        if origin is not None:
            return origin
        used = sorted(attributes_named(function.__code__, name))
        return [[".".join(chain), self._chain_form(value, chain)] for chain in used]

    def _chain_form(self, module: types.ModuleType, chain: tuple[str, ...]) -> Any:
        """Return the form of ``module.name`` or ``module.other.name``.

        A module counts as a whole if the used names are unknown.
        """
        for name in chain:
            value = vars(module).get(name)
            if not is_module(value):
                if name not in vars(module):
                    return self._import_reference(module.__name__)
                if _is_marked(vars(module), name):
                    return "operational"
                return self._watched(name, module.__name__, value)
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
        return [
            name,
            tree_digest(tree),
            [[imported, self._import_reference(imported)] for imported in imports],
        ]

    # ------------------------------------------------------------ classes

    def _class_form(self, cls: type) -> Any:
        details = self._field_details(cls)
        annotations = dict(_annotations(cls))
        return {
            **({"fields": self._exactly(details)} if details else {}),
            **(
                {"documents": self._exactly(self.form(cls.__doc__))}
                if _reads_documents(cls)
                else {}
            ),
            "class": cls.__qualname__,
            "kind": self.form(type(cls)),
            "bases": [self.form(base) for base in cls.__bases__],
            "members": {
                name: self._member_form(cls, name, value)
                for name, value in sorted(vars(cls).items())
                if self._counts(name, value, annotations.get(name))
            },
            "enum": self._members_of_enum(cls),
            "annotations": [
                [name, self.form(annotation)]
                for name, annotation in annotations.items()
                if not self._ignored(name)
            ],
            "schema": FormBuilder().form(_json_schema(cls)),
        }

    def _members_of_enum(self, cls: type) -> Any:
        if not issubclass(cls, Enum):
            return None
        return [[name, self.form(member.value)] for name, member in cls.__members__.items()]

    def _counts(self, name: str, value: Any, annotation: Any) -> bool:
        """Return whether a member of a class counts."""
        if is_special(name):
            return is_written(name, value)
        if name == "_abc_impl" or is_slot(value) or self._is_ignored(name, value):
            return False
        return annotation is None or not is_annotated_operational(annotation)

    def _field_details(self, cls: type) -> list[Any]:
        """Return what the annotations and attributes of a class do not tell of its fields."""
        return [[name, self.form(details)] for name, details in field_details(cls)]

    def _member_form(self, cls: type, name: str, member: Any) -> Any:
        match None if self._is_proxy(member) else member:
            case staticmethod() | classmethod():
                return [type_name(member), self.form(member.__func__)]
            case property():
                return [self.form(part) for part in (member.fget, member.fset, member.fdel)]
            case cached_property():
                return self.form(member.func)
        return self._watched(name, f"{cls.__module__}.{cls.__qualname__}", member)

    # ------------------------------------------------------------ values

    @override
    def _is_proxy(self, value: Any) -> bool:
        """Return whether reading an attribute of an object may run code of its class."""
        reads = isinstance(type(value).__getattribute__, types.FunctionType)
        return (reads and not is_content(value)) or super()._is_proxy(value)

    @override
    def _special_form(self, value: Any, depth: int) -> Any:
        if is_module(value) and self._home.origin(value.__name__) is None:
            self._import_reference(value.__name__)
            return self._exactly({"module": value.__name__, "content": True})
        return super()._special_form(value, depth)

    @override
    def _is_resource(self, value: Any) -> bool:
        """Return whether an object counts by its public attributes; those of the project do not."""
        foreign = self._home.origin(type(value).__module__) is not None
        return foreign and super()._is_resource(value)

    @override
    def atom(self, value: Any) -> Any:
        """Return the form of a plain value; project paths are made relative."""
        if self._folder and isinstance(value, (str, os.PathLike)):
            text = os.fsdecode(value)
            if text == self._folder or text.startswith(self._folder + os.sep):
                return {"below": super().atom(text.removeprefix(self._folder))}
        return super().atom(value)

    @override
    def object(self, value: Any, depth: int) -> Any:
        """Return the form of a function, type or other object."""
        if isinstance(value, types.FunctionType):
            return self._function_reference(value, depth)
        if isinstance(value, type):
            return self._reference(value)
        if typing.get_origin(value) is not None:
            parts = [typing.get_origin(value), *typing.get_args(value)]
            return {"type": [self.form(part, depth) for part in parts]}
        return self._instance_form(value, depth)

    def _instance_form(self, value: Any, depth: int) -> Any:
        """Return the form of an object that is no function or type."""
        use = attributes_of(value).get("__dataops__")
        if use is not None:
            return self._operator_form(use, depth)
        origin = self._home.origin(type(value).__module__)
        data = isinstance(value, (*_DATA, *_imported_data(), *_CONTAINERS)) or is_dataclass(value)
        if origin is None or data:
            return super().object(value, depth)
        return self._foreign_form(value, depth, origin)

    def _operator_form(self, use: Any, depth: int) -> Any:
        """Return the form of an operator that the code calls: what it does, not how it is run."""
        target = self.form(use.spec.target, depth)
        options = self._entries(dict(use.options).items(), depth, attributes=True)
        return self._exactly({"operator": [target, digest_of_form(options)]})

    def _foreign_form(self, value: Any, depth: int, origin: str) -> Any:
        """Return the form of an object whose class is not part of the project."""
        form = {
            "class": self._reference(type(value)),
            "name": read_attribute(value, "__qualname__"),
        }
        module = read_attribute(value, "__module__")
        if isinstance(module, str) and isinstance(form["name"], str):
            form["from"] = self._home.origin(module)
        if isinstance(value, _BOUND) and not inspect.ismodule(value.__self__):
            form["self"] = self.form(value.__self__, depth)
        if callable(value):
            form["wrapped"] = self.form(read_attribute(value, "__wrapped__"), depth)
        means = _is_means(value)
        self._locks += means and type(value).__module__ in {"_thread", "threading"}
        named = isinstance(form["name"], str) and not isinstance(value, _RUNNING)
        if means or named or origin.startswith("dagster_dataops"):
            return form if origin == "python" else form | self.public(value, depth, unknown=False)
        content = self._content(value, depth)
        if content is not None:
            return self._exactly(form | content)
        kept = None if self._is_client(value) else self._state_of(value)
        if kept is None:
            return form | self.public(value, depth, unknown=True)
        return self._exactly({**form, "state": self._foreign_state(value, kept, depth, origin)})

    def _foreign_state(self, value: Any, kept: list[Any], depth: int, origin: str) -> str:
        """Return the digest of the state of an object; one with locks is no value, and reported."""
        before, self._locks = self._locks, 0
        state = digest_of_form(self._state_forms(value, kept, depth))
        if self._locks and origin != "python" and _top_of(value) not in _VALUES:
            self.unknown.add(type_name(value))
        self._locks += before
        return state

    def _is_client(self, value: Any) -> bool:
        """Return whether an object gives access to something outside, such as a service or file."""
        ends = any(callable(getattr(type(value), name, None)) for name in _ENDS)
        client = self._is_resource(value) or (ends and not is_content(value))
        return client and not isinstance(value, _RUNNING)

    def _function_reference(self, function: types.FunctionType, depth: int) -> Any:
        """Return the form of a function; a foreign function may wrap one of the project."""
        form = {"function": self._reference(function)}
        if self._home.origin(module_of(function)) is not None:
            around = {name: v for name, v in _cells(function) if self._may_be_project_code(v)}
            wrapped = vars(function).get("__wrapped__")
            form["around"] = digest_of_form(
                [self.form(layer, depth) for layer in (around, wrapped)]
            )
        return form

    def _may_be_project_code(self, value: Any) -> bool:
        if isinstance(value, dict):  # excludes caches
            return all(map(callable, value.values()))
        plain = isinstance(value, (types.FunctionType, type, str, int, float, *_CALLS))
        return plain or self._home.origin(type(value).__module__) is None


def is_module(value: object) -> TypeGuard[types.ModuleType]:
    """Return whether ``value`` is a module, without reading an attribute of it."""
    return issubclass(type(value), types.ModuleType)


def _imported_data() -> Iterator[type]:
    """Yield the classes of data whose modules are imported."""
    for module, name in _DATA_OF_MODULES.items():
        if module in sys.modules:
            yield getattr(sys.modules[module], name)


def module_of(target: Any) -> str:
    """Return the module that defines a function or class; decorators may change __module__."""
    if isinstance(target, types.FunctionType):
        return str(target.__globals__.get("__name__", ""))
    module = str(getattr(target, "__module__", None) or "")
    # A class made by a call, such as make_dataclass(), belongs to nobody.
    is_made = module == "types" and vars(types).get(getattr(target, "__name__", "")) is not target
    return "" if is_made else module


def _reads_documents(cls: type) -> bool:
    """Return whether a method of a class reads docstrings."""
    methods = (var for var in vars(cls).values() if issubclass(type(var), types.FunctionType))
    return any("__doc__" in names_in(method.__code__) for method in methods)


def _values_named(
    function: types.FunctionType, names: AbstractSet[str]
) -> Iterator[tuple[str, Any]]:
    """Yield the global and closure variables that a function uses, with their values."""
    for name in sorted(names):
        known = name in function.__globals__ and name not in _OF_MODULES
        if known and not _is_marked(function.__globals__, name):
            yield name, function.__globals__[name]
    yield from _cells(function)


def _cells(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # an empty cell: assigned later
            continue


def _top_of(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _is_means(value: Any) -> bool:
    """Return whether an object only reports, synchronizes, runs work or belongs to this process."""
    excluded = (os.environ, sys.stdin, sys.stdout, sys.stderr)
    return _top_of(value) in _MEANS or any(value is member for member in excluded)


def _is_marked(names: Mapping[str, Any], name: str) -> bool:
    """Return whether a module annotates a constant as operational."""
    annotations = names.get("__annotations__") or {}
    return name in annotations and is_annotated_operational(annotations[name])


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
