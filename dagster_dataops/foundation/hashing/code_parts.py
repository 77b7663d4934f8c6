"""The parts of a code version: a digest for each function, class, constant, module and package.

A code version is one digest, which tells that something has changed. Its parts tell what: two sets
of parts are compared name by name. A part names the others that it uses, and does not hold them.
"""

from types import FunctionType
from typing import Any, Final

from dagster_dataops.foundation.hashing.code import PYTHON, CodeForms, is_module, module_of
from dagster_dataops.foundation.hashing.code_origins import ProjectScope, folder_of
from dagster_dataops.foundation.hashing.exact_forms import COUNT_ALL, EntryRules
from dagster_dataops.foundation.hashing.moved_modules import counted_module
from dagster_dataops.foundation.hashing.values import Ignored, digest_of_form, ignore_nothing
from dagster_dataops.foundation.override import override

CONSTANT: Final = "constant "  # the names of parts that are no functions or classes begin so
MODULE: Final = "module "
PACKAGE: Final = "package "
_DIGITS: Final = 12  # of a digest: parts are compared, and none is found by it


def code_parts(
    target: Any, ignored: Ignored = ignore_nothing, home: str = "", entries: EntryRules = COUNT_ALL
) -> dict[str, str]:
    """Return the digests of the parts of a code version by name, such as ``module.function``.

    Args:
        target: The function or class; other arguments as for `code_facts`.
        ignored: Returns whether a name does not count.
        home: The package that counts by its code.
        entries: How entries count; of hidden constants the digest is one that is guarded.
    """
    at_home = ProjectScope.of_package(home) if home else ProjectScope((), module_of(target))
    forms = _NamedForms(ignored, at_home, entries)
    forms.add_all(target)
    return {name: digest[:_DIGITS] for name, digest in sorted(forms.parts.items())}


class _NamedForms(CodeForms):
    """Collects the parts by name. References are names, so that a new part changes no other."""

    def __init__(self, ignored: Ignored, home: ProjectScope, entries: EntryRules) -> None:
        super().__init__(ignored, home, entries, older=False)
        self.parts: dict[str, str] = {}

    def add_all(self, target: Any) -> None:
        """Add the parts of ``target`` and of all that it depends on."""
        self.parts[f"{PACKAGE}{PYTHON.partition(' ')[0]}"] = PYTHON.partition(" ")[2]
        self.form(target)
        for queued in self._queue:  # the loop appends to it
            self._folder = folder_of(module_of(queued))
            form = (
                self._class_form(queued)
                if isinstance(queued, type)
                else self._function_form(queued)
            )
            self._add(_name_of(queued), [form, *self.rest()])
        for name in self._modules:  # this one, too
            self._add(f"{MODULE}{name}", self._module_form(name))

    def _add(self, name: str, form: Any) -> None:
        """Add a part; of several with one name, such as lambdas, the digest is that of all."""
        digest = digest_of_form(form)
        before = self.parts.get(name, digest)
        self.parts[name] = digest if before == digest else digest_of_form([before, digest])

    @override
    def _reference(self, target: Any) -> str:
        origin = self._home.origin(module_of(target))
        if origin is not None:
            return f"{self._package(origin)} {_name_of(target)}"
        if id(target) not in self._numbers:
            self._numbers[id(target)] = len(self._numbers)
            self._queue.append(target)
        return _name_of(target)

    def _package(self, origin: str) -> str:
        """Return an origin without its versions, which are parts of their own."""
        names = []
        for distribution in origin.split():
            name, _, version = distribution.partition("==")
            names.append(name)
            if version:
                self.parts[f"{PACKAGE}{name}"] = version
        return " ".join(names)

    @override
    def _import_reference(self, name: str) -> Any:
        reference = super()._import_reference(name)
        return reference if reference == "module" else self._package(reference)

    @override
    def _named_value(self, function: FunctionType, name: str, value: Any) -> Any:
        if is_module(value) and (origin := self._home.origin(value.__name__)) is not None:
            return self._package(origin)
        return super()._named_value(function, name, value)

    @override
    def _watched(self, name: str, place: str, value: Any) -> Any:
        form = super()._watched(name, place, value)
        if isinstance(value, (FunctionType, type)):
            return form
        self._add(f"{CONSTANT}{place}.{name}", form)
        return "a constant"


def _name_of(target: Any) -> str:
    return f"{counted_module(module_of(target))}.{target.__qualname__}"
