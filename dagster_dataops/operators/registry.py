"""`OperatorRegistry`: operators by group and name. ``data_register`` is the global one."""

import importlib
import inspect
import re
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from dagster_dataops.errors import (
    DuplicateOperatorError,
    OperatorDefinitionError,
    OperatorOptionError,
)
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.bound_methods import plain_function
from dagster_dataops.operators.definition.decorated_function import P, R, RegisteredFunction
from dagster_dataops.operators.definition.operator import (
    OUTPUTS,
    Operator,
    OperatorMeta,
    unknown_operator,
)
from dagster_dataops.operators.definition.reader_base import FunctionReader, Readable, gives_stream
from dagster_dataops.operators.definition.spec import OperatorSpec
from dagster_dataops.operators.definition.spec_builder import (
    Method,
    OperatorTerms,
    checked_name,
    spec_of_class,
    spec_of_function,
)
from dagster_dataops.operators.kinds.kind_table import function_methods, kinds
from dagster_dataops.operators.options.declared_columns import (
    DECLARATIONS,
    ColumnDeclarations,
    Declaration,
)
from dagster_dataops.operators.options.settings import REMOVED_SETTINGS, SETTING_NAMES
from dagster_dataops.operators.options.signature import nearest, parameters_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

C = TypeVar("C", bound=type)
Outputs: TypeAlias = Sequence[str] | Callable[..., Sequence[str]]
_PREFIX = "data."
_KEYWORDS = {"new_records", "outputs", "renamed_options", "rewrite_func", "window"}


class OperatorRegistry:
    """Registers operators in groups.

    ``data_register`` is the registry of this process::

        @data_register("data.demo", _concurrency_mode="thread")  # settings begin with "_"
        def upper(record: dict, input_key="text"):  # options have defaults
            return record | {input_key: record[input_key].upper()}


        class Suffix(data_register.new_group("demo")):
            def forward(self, record): ...

    ``data.demo.upper(input_key="title")`` constructs the operator. An invalid function or class is
    refused before anything is registered.

    Args:
        runner: Runs an operator over data; used when an operator is called.
        libraries: Modules with a mapping ``GROUPS`` from names of groups to the modules that
            register their operators. The module of a group is imported when the group is requested,
            those of its ``MODULES``, if any, with their operators. Their ``reads_of(name)`` returns
            the columns that an operator needs.
        entry_points: Of installed packages that add groups, each by the module that registers its
            operators; empty for none.
    """

    def __init__(
        self,
        runner: Callable[[Operator, object], object],
        libraries: Sequence[str] = (),
        entry_points: str = "",
    ) -> None:
        self._runner = runner
        self._libraries = list(libraries)
        self._entry_points = entry_points
        self._groups: dict[str, OperatorMeta] = {}
        self._operators: dict[str, dict[str, OperatorMeta]] = {}
        self._homes: dict[str, str] = {}  # modules of groups of installed packages

    def new_group(self, name: str) -> Any:
        """Return the group ``name``, created if needed; inherit from it to register classes."""
        return self._add_group(self._groups.get(name) or self._make_group(name))

    def _make_group(self, name: str) -> OperatorMeta:
        if not (name.isidentifier() and name.isascii()) or name.startswith("_"):
            raise OperatorDefinitionError(f"group {name!r}", "its name is not a plain identifier")
        namespace = {
            "__module__": "dagster_dataops.data",
            "__dataops_group__": name,
            "__dataops_registry__": self,
        }
        group = OperatorMeta(name, (Operator,), namespace)
        group.__qualname__ = f"<group {name}>"  # makes cloudpickle send it by value
        return group

    def _add_group(self, group: OperatorMeta) -> OperatorMeta:
        self._operators.setdefault(group.__dataops_group__, {})
        return self._groups.setdefault(group.__dataops_group__, group)

    def __call__(  # noqa: PLR0913 - what a registration can say
        self,
        group: str,
        *,
        rewrite_func: Method = "forward",
        reads: Declaration | None = None,
        writes: Declaration | None = None,
        columns: Declaration | None = None,
        outputs: Outputs = (),
        window: int | None = None,
        new_records: bool = False,
        renamed_options: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> "Registration":
        """Return a decorator that registers a function or a class.

        Args:
            group: ``data.<group>``; the group is created if needed.
            rewrite_func: ``forward`` for one record at a time, ``forward_batch`` and
                ``forward_window`` for ``_batch_size`` records, ``forward_batch_input`` for the
                whole dataset, ``stream`` for a reader, which takes its options and returns a
                stream. A function annotated to return a stream is also a reader. Classes define the
                method of that name instead.
            reads: The columns that the operator needs, such as ``{"values": list[float]}``; names
                alone for any type; or a function of the options that returns either form. With
                ``_reuse_outcomes`` these columns count, and those that are read by name besides;
                with ``"observed"`` the columns that each call reads.
            writes: The columns that the operator adds to the existing ones.
            columns: All columns of the result, for example of a reader or a decoder.
            outputs: The names of several results, such as ``("train", "test")``, or a function of
                the options that returns them; ``forward`` then returns `To` or a list of them.
            window: The number of records of a window, for operators with ``forward_window``; the
                same as ``_batch_size``.
            new_records: Whether a dataset operator makes new records, such as sums, so that none
                of its input counts as dropped; the same as the class attribute.
            renamed_options: The present names of options by former ones, which are accepted with a
                warning; the same as the class attribute.
            **settings: Execution settings such as ``_concurrency_mode``.
        """
        name = _group_name(group)
        if window is not None:
            settings["_batch_size"] = window
        _check_registration(name, rewrite_func, settings)
        terms = OperatorTerms(
            group=name,
            method=rewrite_func,
            settings=settings,
            declared=ColumnDeclarations(reads=reads, writes=writes, columns=columns),
            outputs=outputs,
            renamed=renamed_options or {},
        )
        return Registration(self, terms, new_records=new_records)

    def forward_batch_input(self, group: str, **settings: Any) -> "Registration":
        """Return ``self(group, rewrite_func="forward_batch_input")``, LazyLLM's notation."""
        return self(group, rewrite_func="forward_batch_input", **settings)

    def add(self, target: Any, terms: OperatorTerms) -> Any:
        """Register a function or a plain class; return the object that replaces it."""
        add = self._add_plain_class if inspect.isclass(target) else self._add_function
        return add(target, terms)

    @override
    def __reduce__(self) -> Any:
        """Pickle as an empty registry: workers receive operators and register none."""
        return OperatorRegistry, (_refuse_to_run,)

    def groups(self) -> list[str]:
        """Return the sorted names of all groups, with those of libraries and other packages."""
        return sorted({*self._groups, *self._modules_of_groups(), *self._added_groups()})

    def operators(self, group: str) -> list[str]:
        """Return the sorted names of the operators of ``group``, including the libraries'."""
        self._load(group)
        return sorted(self._operators.get(group, ()))

    def group(self, name: str) -> Any:
        """Return a group, or raise `UnknownOperatorError`."""
        home = None if name in self._groups else self._modules_of_groups().get(name)
        if home is not None and _modules_in(home) != [home]:
            self.new_group(name)  # its modules are imported with its operators
        if name not in self._groups:
            self._load(name)
        if name not in self._groups:
            raise unknown_operator(f"data.{name}", [f"data.{known}" for known in self.groups()])
        return self._groups[name]

    def text_of(self, name: str) -> str:
        """Return a text about a group: its title, its operators and their first sentences."""
        operators = {known: self.operator(name, known) for known in self.operators(name)}
        module = sys.modules.get(self._modules_of_groups().get(name) or self._homes.get(name, ""))
        title = (module and module.__doc__) or f"The operators of group {name}."
        lines = [
            f"- {known}: {_first_sentence(operator.__dataops_spec__)}"
            for known, operator in operators.items()
        ]
        return "\n".join([title.strip(), "", *lines])

    def operator(self, group: str, name: str) -> OperatorMeta:
        """Return an operator's class, or raise `UnknownOperatorError`."""
        operator = self._operators.get(group, {}).get(name)
        if operator is None:
            self._load_module_of(group, name)
            operator = self._operators.get(group, {}).get(name)
        if operator is None:
            self._load(group)
            operator = self._operators.get(group, {}).get(name)
        if operator is None:
            self._added_groups()  # warns of packages that add to a group of the libraries
            known = [f"data.{group}.{other}" for other in self.operators(group)]
            raise unknown_operator(f"data.{group}.{name}", known)
        return operator

    def is_present(self, operator: Operator) -> bool:
        """Return whether no other code was registered later under the name of ``operator``."""
        spec = operator.__dataops__.spec
        present = self._operators.get(spec.group, {}).get(spec.name)
        if present is None or present is type(operator):
            return True
        return present.__dataops_spec__.code_version == spec.code_version

    def run(self, operator: Operator, data: object) -> object:
        """Run ``operator`` over ``data``."""
        return self._runner(operator, data)

    def add_class(self, operator: OperatorMeta, declared: ColumnDeclarations) -> None:
        """Register a class operator after its definition."""
        group, outputs = operator.__dataops_group__, getattr(operator, OUTPUTS, ())
        if declared.reads is None:
            declared = declared._replace(reads=self._reads_of_library(operator))
        terms = OperatorTerms(group=group, declared=declared, outputs=outputs)
        self._add(operator, spec_of_class(operator, terms))

    def _reads_of_library(self, operator: OperatorMeta) -> Declaration | None:
        """Return what an operator of a library reads, or one that inherits from its classes."""
        for library in self._libraries:
            for base in operator.__mro__:
                if base.__module__.startswith(f"{library}."):
                    name = f"{getattr(base, '__dataops_group__', '')}.{base.__name__}"
                    declaration: Declaration = importlib.import_module(library).reads_of(name)
                    return declaration
        return None

    def _add_plain_class(self, target: type, terms: OperatorTerms) -> type:
        if hasattr(target, "__dataops_group__"):
            reason = "it inherits from a group, which registers it; leave the decorator off"
            raise OperatorDefinitionError(target.__qualname__, reason)
        namespace = {"__doc__": target.__doc__, "__module__": target.__module__}
        base = self._groups.get(terms.group) or self._make_group(terms.group)
        reads = gives_stream(target) and not issubclass(target, Readable)
        bases = (target, Readable, base) if reads else (target, base)
        operator = OperatorMeta(target.__name__, bases, namespace)
        operator.__qualname__ = target.__qualname__
        if terms.declared.reads is None:
            reads_of = getattr(target, "reads_of_options", None)
            terms = terms._replace(declared=terms.declared._replace(reads=reads_of))
        spec = spec_of_class(operator, terms, target)
        self._add_group(base)
        self._add(operator, spec)
        return operator

    def _add_function(self, function: Any, terms: OperatorTerms) -> RegisteredFunction[Any, Any]:
        function = getattr(function, "function", function)  # already registered in another group
        if not inspect.isfunction(function):
            raise OperatorDefinitionError(repr(function), "it is neither a function nor a class")
        spec = spec_of_function(function, terms)
        operator = _class_of_function(spec, self.new_group(terms.group))
        self._add(operator, spec)
        first = next(iter(inspect.signature(function).parameters)) if spec.inputs else None
        return RegisteredFunction(function, operator, first)

    def of_function(self, function: Callable[..., Any], name: str) -> Operator:
        """Return an operator for a function, without registering it in a group.

        An ``async def``, and a function whose first parameter is annotated ``dict``, gets one
        record at a time; any other gets all records as a list.

        Args:
            function: The function. Its further parameters need defaults.
            name: The operator's name if the function is a ``lambda``.

        Raises:
            OperatorDefinitionError: The function takes no data.
            OperatorOptionError: A parameter has no default.
        """
        method: Method = "forward" if _takes_one_record(function) else "forward_batch_input"
        terms = OperatorTerms(group="", method=method)
        spec = spec_of_function(function, terms, name if function.__name__ == "<lambda>" else None)
        operator: Operator = _class_of_function(spec, self._make_group("function"))()
        return operator

    def _add(self, operator: OperatorMeta, spec: OperatorSpec) -> None:
        before = self._operators[spec.group].get(spec.name)
        if before is not None and not _same_place(before.__dataops_spec__, spec):
            there = _location_text(before.__dataops_spec__)
            raise DuplicateOperatorError(spec.qualified_name, there, _location_text(spec))
        operator.__dataops_spec__ = spec
        if spec.kind.reads_source and spec.declared.columns is not None:
            columns = spec.declared.columns
            reader: Any = operator
            reader.columns = staticmethod(columns) if callable(columns) else columns
        self._operators[spec.group][spec.name] = operator

    def _modules_of_groups(self) -> dict[str, str]:
        """Return the modules of the libraries by the group that each registers."""
        groups = [importlib.import_module(library).GROUPS for library in self._libraries]
        return {group: module for mapping in groups for group, module in mapping.items()}

    def _load(self, group: str) -> None:
        """Import the module of a group, if the libraries or an installed package have one."""
        home = self._modules_of_groups().get(group)
        if home is not None:
            for module in _modules_in(home):
                importlib.import_module(module)
        elif (entry := self._added_groups().get(group)) is not None:
            self._load_added(group, entry)

    def _load_module_of(self, group: str, name: str) -> None:
        """Import the module of a group of the libraries that has an operator, as its text tells."""
        home = self._modules_of_groups().get(group)
        if home is not None:
            defined = re.compile(rf"^(class|(async )?def) {re.escape(name)}\b", re.MULTILINE)
            texts = ((module, _text_of_module(module)) for module in _modules_in(home))
            module = next((module for module, text in texts if defined.search(text)), None)
            if module is not None:
                importlib.import_module(module)

    def _added_groups(self) -> "Mapping[str, EntryPoint]":
        """Return the groups that installed packages add; their modules are not imported."""
        if not self._entry_points:
            return {}
        from dagster_dataops.foundation.entry_points import added  # most runs need none

        return added(self._entry_points, self._modules_of_groups())

    def _load_added(self, group: str, entry: "EntryPoint") -> None:
        """Import the module of a group of an installed package."""
        from dagster_dataops.foundation.entry_points import load, unfit

        module = load(entry)
        if not inspect.ismodule(module) or not self._operators.get(group):
            wanted = f"a module that registers the operators of data.{group}"
            raise unfit(entry, module, wanted)
        self._homes[group] = entry.module


def _modules_in(home: str) -> list[str]:
    """Return the modules that register the operators of a group.

    Args:
        home: The module of the group, which is imported.
    """
    named = getattr(importlib.import_module(home), "MODULES", ())
    return [f"{home}.{name}" for name in named] or [home]


def _text_of_module(name: str) -> str:
    """Return the text of a module, which is not imported; empty if it is not there."""
    spec = find_spec(name)
    source = getattr(spec and spec.loader, "get_source", None)
    return (source(name) if source else None) or ""


class Registration:
    """The decorator that ``data_register(...)`` returns."""

    def __init__(
        self, registry: OperatorRegistry, terms: OperatorTerms, *, new_records: bool
    ) -> None:
        self._registry = registry
        self._terms = terms
        self._new_records = new_records

    @overload
    def __call__(self, target: C) -> C: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, target: Callable[P, R]) -> RegisteredFunction[P, R]: ...

    def __call__(self, target: Any) -> Any:
        """Register ``target``."""
        if self._new_records:
            _check_dataset_operator(target, self._terms.method)
            target.new_records = True
        return self._registry.add(target, self._terms)


def _check_dataset_operator(target: Any, method: Method) -> None:
    """Raise an error for a target that takes single records."""
    methods = [kind.method for kind in kinds() if kind.may_sum_up]
    defined = (
        [method for method in methods if hasattr(target, method)]
        if inspect.isclass(target)
        else [method]
    )
    if not set(defined) & set(methods):
        named = " or ".join(methods)
        reason = f"new_records is for operators with {named}; others return an outcome a record"
        raise OperatorDefinitionError(target.__name__, reason)


def _class_of_function(spec: OperatorSpec, group: OperatorMeta) -> OperatorMeta:
    """Return the operator class of a function; its method calls it with the options bound."""
    namespace = {"__doc__": spec.target.__doc__, "__module__": spec.target.__module__}
    bases: tuple[type, ...] = (group,)
    if spec.kind.reads_source:
        bases = (FunctionReader, group)
    else:
        namespace[spec.method] = property(plain_function)
    operator = OperatorMeta(spec.name, bases, namespace)
    operator.__dataops_spec__ = spec
    return operator


def _takes_one_record(function: Callable[..., Any]) -> bool:
    kinds = [
        typing.get_origin(parameter.annotation) or parameter.annotation
        for parameter in parameters_of(function)
    ]
    one_record = bool(kinds) and isinstance(kinds[0], type) and issubclass(kinds[0], Mapping)
    return one_record or inspect.iscoroutinefunction(function)


def _refuse_to_run(operator: Operator, data: object) -> object:  # noqa: ARG001
    msg = "an operator cannot run another operator inside a worker process; join them in a pipeline"
    raise RuntimeError(msg)


def _group_name(path: object) -> str:
    if not isinstance(path, str):
        name = getattr(path, "__qualname__", repr(path))
        raise OperatorDefinitionError(name, "write @data_register('data.<group>') above it")
    name = path.removeprefix(_PREFIX)
    if not path.startswith(_PREFIX) or "." in name:
        reason = f"a group is written 'data.<group>'; did you mean 'data.{name.split('.')[-1]}'?"
        raise OperatorDefinitionError(f"group {path!r}", reason)
    return checked_name(name, OperatorRegistry)


def _check_registration(group: str, method: str, settings: dict[str, Any]) -> None:
    where = f"data_register('data.{group}')"
    if method not in function_methods():
        reason = f"must be one of {', '.join(function_methods())}; got {method!r}"
        raise OperatorOptionError(where, "rewrite_func", reason)
    for name in settings:
        if name not in SETTING_NAMES:
            if name in REMOVED_SETTINGS:
                raise OperatorOptionError(where, name, REMOVED_SETTINGS[name])
            allowed = sorted(SETTING_NAMES | DECLARATIONS | _KEYWORDS)
            near = nearest(name, allowed)
            hint = f"; did you mean {near!r}?" if near else "."
            reason = f"is unknown{hint} Allowed: {', '.join(allowed)}"
            raise OperatorOptionError(where, name, reason)


def _file_of(spec: OperatorSpec) -> str | None:
    try:
        return inspect.getsourcefile(spec.target)
    except TypeError:  # defined in an interactive session
        return None


def _same_place(spec: OperatorSpec, other: OperatorSpec) -> bool:
    """Return whether both are from one module, or from one file imported under two names."""
    if spec.place == other.place:
        return True
    file = _file_of(spec)
    same_name = spec.target.__qualname__ == other.target.__qualname__
    return same_name and file is not None and file == _file_of(other)


def _first_sentence(spec: OperatorSpec) -> str:
    return " ".join(spec.description.partition("\n\n")[0].split())


def _location_text(spec: OperatorSpec) -> str:
    file = _file_of(spec)
    return f"{spec.place} ({file})" if file else spec.place
