"""Convert options and constants to JSON forms that differ whenever a result may differ.

`FormBuilder` makes equal forms of equal values: of a list and a tuple, of two dicts whose keys are
in another order. The records that an operator makes of such values can differ, so here all of this
counts: the class of each value, the order of a dict, the factory of a ``defaultdict``, and values
nested without limit. Hidden values count by a digest that is expensive to guess from.

Forms that `FormBuilder` makes without ambiguity are kept, so that checkpoints of version 0.2 are
still found. `ExactForms.rules` tells whether version 0.2 made it of other values, too. With
``older``, the forms are those of version 0.2: the class and the order of containers do not count.
If that version left more than this out, `ExactForms.partial` tells so, and the form is of no use.
"""

import copyreg
import enum
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, time
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from dagster_dataops.foundation.hashing.operational import Operational, is_operational
from dagster_dataops.foundation.hashing.values import (
    RULES,
    FormBuilder,
    FunctionDigest,
    Ignored,
    PathForm,
    attributes_of,
    digest_of_form,
    function_name,
    holds_resource,
    ignore_nothing,
    read_attribute,
    state_parts,
    text_alone,
    type_name,
    unordered_digest,
)
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import CopiedFile

Hidden: TypeAlias = Callable[[str, Any], bool]
_EMPTIABLE: Final = (str, bytes, list, tuple, dict, set, frozenset)
_MAX_DEPTH: Final = 30  # of recursion, which takes up to 16 calls for each
_MAX_PARTS: Final = 1_000_000  # containers and objects of one operator, about 10 s
_NAME_PARTS: Final = 2  # a module and a name
_PACKAGE: Final = "dagster_dataops."
_OF_PYDANTIC: Final = ("__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__")
_PLAIN: Final = frozenset({str, int, float, bytes, type(Path())})
_BUILT_IN: Final = frozenset({list, tuple, dict, set, frozenset, type, types.FunctionType})
# Values that are no resources although they have ``__enter__``.
_CONTEXTS: Final = frozenset({"contextlib", "decimal", "numpy", "pandas", "PIL", "polars"})


def hide_nothing(_name: str, _value: Any) -> bool:
    """Hide no value."""
    return False


class EntryRules(NamedTuple):
    """How the entries and attributes of values count.

    Attributes:
        credential: Returns whether a text with this key or attribute does not count.
        holder: Returns whether a mapping with this name has such keys; all objects and all lists of
            headers do.
        hidden: Returns whether a value with this name is hidden, so that its digest is guarded.
    """

    credential: Ignored = ignore_nothing
    holder: Ignored = ignore_nothing
    hidden: Hidden = hide_nothing


COUNT_ALL: Final = EntryRules()


class ExactForms(FormBuilder):
    """Converts values to JSON forms by all that can affect a result.

    Args:
        functions: Returns the form of functions and classes.
        ignored: Returns whether a name of a public attribute does not count.
        paths: Returns the form of a path whose content counts; ``None`` for other paths.
        entries: How entries and attributes count.
        older: Whether containers count as in version 0.2.

    Attributes:
        rules: The end of a digest of the forms: `RULES` if version 0.2 took other values for equal.
        partial: Whether version 0.2 left something out that counts.
    """

    def __init__(
        self,
        functions: FunctionDigest = function_name,
        ignored: Ignored = ignore_nothing,
        paths: PathForm = text_alone,
        entries: EntryRules = COUNT_ALL,
        *,
        older: bool = False,
    ) -> None:
        super().__init__(functions, ignored, paths)
        self.rules = ""
        self.partial = False
        self._older = older
        self._entry_rules = entries
        self._within: dict[int, int] = {}  # ids of the objects around a value, with their depths
        self._place = ""  # the name of the nearest value around that has one
        self._later: list[Any] = []  # objects that are nested too deeply for recursion
        self._visited = 0

    def named(self, name: str, value: Any) -> Any:
        """Return the form of an option, with all that is nested in it."""
        form = self._named(name, value, 0)
        rest = self.rest()
        return [form, *rest] if rest else form

    def rest(self) -> list[Any]:
        """Return the forms of the objects that were nested too deeply, by their numbers."""
        forms = []
        while self._visited < len(self._later):
            self._visited += 1
            forms.append(self._container_form(self._later[self._visited - 1], 1))
        return forms

    def _exactly(self, form: Any) -> Any:
        """Return a form that version 0.2 did not make."""
        self.rules = RULES
        self.partial = True
        return form

    def _ordered(self, form: Any) -> Any:
        """Return a form that version 0.2 made of other containers, too, such as of a tuple.

        A digest with the form of a list ends with `RULES`, too, although version 0.2 made the same
        form: such a digest without that end was stored by version 0.2, and only then it may be that
        of a tuple.
        """
        self.rules = RULES
        return form

    @override
    def form(self, value: Any, depth: int = 0) -> Any:
        """Return the JSON form of ``value``; composed values become a digest of their parts."""
        kind = type(value)
        if kind is str or kind is int:
            return self.atom(value)
        if kind is CopiedFile:  # counts as its path, as before it had a bucket
            return self.form(value.path, depth)
        return self._form_once(value, depth) if kind in _BUILT_IN else super().form(value, depth)

    # ------------------------------------------------------------ plain values

    @override
    def atom(self, value: Any) -> Any:
        """Return the form of a plain value; of subclasses of `str` and so on also the class."""
        form = super().atom(value)
        if form is None:
            return None
        if type(value) not in _PLAIN:
            of = self._form_once(type(value), 1)
            return self._exactly({"plain": form, "of": of, "state": self._own_state(value, 1)})
        # A text of letters and digits alone holds no login.
        text = type(value) is str and not value.isalnum()
        return self._guarded("", form) if text and self._is_hidden("", value) else form

    @override
    def _special_form(self, value: Any, depth: int) -> Any:
        form = super()._special_form(value, depth)
        if isinstance(value, enum.Flag) and value.name is None:
            return self._exactly({"flag": [form, self.form(value.value, depth)]})
        if isinstance(value, re.Pattern) and isinstance(value.pattern, bytes):
            return self._exactly({"pattern of bytes": form})
        return form

    @override
    def _composed_form(self, value: Any, depth: int) -> Any:
        if is_operational(value) and not isinstance(value, Operational):
            return self._guarded("", self.form(value.get_secret_value(), depth))
        return super()._composed_form(value, depth)

    # ------------------------------------------------------------ containers

    @override
    def _form_once(self, value: Any, depth: int) -> Any:
        key = id(value)
        if key in self._within:  # the value contains itself
            above = len(self._within) - self._within[key]
            return self._exactly(f"<{type_name(value)} {above} above>")
        if key not in self._forms:
            self._alive.append(value)
            self._forms[key] = self._first_form(value, depth)
        return self._forms[key]

    def _first_form(self, value: Any, depth: int) -> Any:
        if len(self._alive) > _MAX_PARTS:
            self.unknown.add(f"{type_name(value)}, one of more than {_MAX_PARTS:,} parts")
            return f"<{type_name(value)}>"
        if depth >= _MAX_DEPTH:
            self._later.append(value)
            return self._exactly({"later": len(self._later)})
        self._within[id(value)] = len(self._within)
        try:
            return self._container_form(value, depth + 1)
        finally:
            del self._within[id(value)]

    @override
    def _container_form(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is list:
            return self._ordered({"list": self._items_digest(value, depth)})
        if kind is tuple:
            name = "list" if self._older else "tuple"
            return self._ordered({name: self._items_digest(value, depth)})
        if kind is dict:
            return self._dict_form(value, depth)
        if kind is set or kind is frozenset:
            return self._set_form(value, depth)
        return self.object(value, depth)

    def _items_digest(self, items: Any, depth: int) -> str:
        if type(items) is tuple and len(items) == 2 and type(items[0]) is str:
            name, value = items  # perhaps the header of a request
            return digest_of_form([self.form(name, depth), self._named(name, value, depth)])
        return digest_of_form(
            [self.form(item, depth) for item in items if not self._is_login(item)]
        )

    def _is_login(self, item: Any) -> bool:
        """Return whether an item is a header with a credential: its name and a text."""
        if type(item) not in {list, tuple} or len(item) != 2:
            return False
        name, value = item
        if type(name) is not str or not _is_one_text(value):
            return False
        return is_header(name) and self._entry_rules.credential(name)

    def _dict_form(self, value: Mapping[Any, Any], depth: int, *, attributes: bool = False) -> Any:
        entries = self._entries(value.items(), depth, attributes=attributes)
        if len(entries) > 1 and not self._older:
            return self._ordered({"dict": digest_of_form(entries)})
        return {"mapping": unordered_digest(entries)}

    def _entries(
        self, pairs: Iterable[tuple[Any, Any]], depth: int, *, attributes: bool = False
    ) -> list[Any]:
        """Return the forms of keys and values, without credentials."""
        holder = attributes or self._entry_rules.holder(self._place)

        def is_login(name: str, value: Any) -> bool:
            return self._entry_rules.credential(name) and _is_text(value)

        return [
            [self.form(key, depth), self._named(key, item, depth)]
            for key, item in pairs
            if not (isinstance(key, str) and (holder or is_header(key)) and is_login(key, item))
        ]

    def _set_form(self, value: Any, depth: int) -> Any:
        form = super()._container_form(set(value), depth)
        exact = form if self._older or type(value) is set else {"frozenset": form}
        return self._ordered(exact)

    # ------------------------------------------------------------ hidden values

    def _named(self, name: Any, value: Any, depth: int) -> Any:
        """Return the form of a value with a name: of an option, constant, entry or attribute."""
        around = self._place
        self._place = name if isinstance(name, str) else around
        form = self.form(value, depth)
        self._place = around
        secret = isinstance(name, str) and _may_be_secret(value)
        return self._guarded(name, form) if secret and self._is_hidden(name, value) else form

    def _is_hidden(self, name: str, value: Any) -> bool:
        return self._entry_rules.hidden(name, value)

    def _guarded(self, name: str, form: Any) -> Any:
        known = isinstance(form, dict) and "hidden" in form
        from dagster_dataops.foundation.hashing.guarded_digest import guarded_digest  # rare

        return form if known else self._exactly({"hidden": guarded_digest(name, form)})

    # ------------------------------------------------------------ objects

    @override
    def object(self, value: Any, depth: int) -> Any:
        """Return the form of a value that is neither plain nor a built-in container."""
        if isinstance(value, (types.FunctionType, type)):
            code = self._functions(value)
            return self._exactly({"code": code}) if code.endswith(RULES) else {"code": code}
        form = {"object": self._form_once(type(value), depth)}
        content = self._content(value, depth)
        return super().object(value, depth) if content is None else self._exactly(form | content)

    def _content(self, value: Any, depth: int) -> dict[str, Any] | None:
        """Return the content of an object that pickle does not tell; ``None`` for other objects."""
        if isinstance(value, (set, frozenset)):
            items = super()._container_form(set(value), depth)
            return {"items": items, "state": self._own_state(value, depth)}
        names = getattr(type(value), "_fields", None)
        if isinstance(value, tuple) and isinstance(names, tuple):
            named = zip(names, tuple.__iter__(value), strict=False)
            entries = self._entries(named, depth, attributes=True)
            return {"fields": [entries, self._own_state(value, depth)]}
        if isinstance(value, (datetime, time)) and value.fold:  # which old protocols do not store
            return {"second": self.object(value.replace(fold=0), depth)}
        from dagster_dataops.foundation.hashing.stand_ins import stand_in  # rare

        content = stand_in(value)
        return None if content is None else {"content": self.form(content, depth)}

    def _own_state(self, value: Any, depth: int) -> Any:
        """Return the form of the attributes and slots of a text, set and so on of a subclass."""
        kept = _state(value)
        known = kept is not None and len(kept) > _NAME_PARTS
        return self._kept_form(value, kept[2] if kept and known else attributes_of(value), depth)

    @override
    def _is_resource(self, value: Any) -> bool:
        return not is_content(value) and holds_resource(value)

    @override
    def _state_of(self, value: Any) -> list[Any] | None:
        """Return the parts from which pickle would rebuild ``value``, also by `copyreg`."""
        parts = _silent_state(value) if type(value).__module__ == "itertools" else _state(value)
        if parts is not None and len(parts) == _NAME_PARTS and not _is_global(value, parts[-1]):
            return None
        return parts

    @override
    def _state_forms(self, value: Any, kept: list[Any], depth: int) -> list[Any]:
        if len(kept) == _NAME_PARTS:
            return super()._state_forms(value, kept, depth)
        maker, arguments, state, items, pairs = kept
        return [
            self.form(maker, depth),
            self._listed(arguments, depth),
            self._kept_form(value, state, depth),
            self._listed(items, depth),
            self._entries(pairs, depth) if pairs else self._listed((), depth),
        ]

    def _kept_form(self, value: Any, state: Any, depth: int) -> Any:
        """Return the form of the state of an object.

        The class decides about the order of fields of a dataclass and of slots.
        """
        if type(state) is dict:
            return self._attributes_form(value, state, depth)
        if type(state) is not tuple:
            return self.form(state, depth)
        if isinstance(value, partial):
            function, arguments, *keywords = state
            forms = [self.form(function, depth), self._listed(arguments, depth)]
            forms += [self.form(keyword, depth) for keyword in keywords]
            return {"list": digest_of_form(forms)}
        if len(state) == 2 and type(state[1]) is dict:  # attributes and slots
            entries = self._entries(state[1].items(), depth, attributes=True)
            slots = {"mapping": unordered_digest(entries)}
            return {"list": digest_of_form([self._kept_form(value, state[0], depth), slots])}
        return self._listed(state, depth)

    def _attributes_form(self, value: Any, state: dict[str, Any], depth: int) -> Any:
        if [*state] == ["__dict__", *_OF_PYDANTIC] and type(state["__dict__"]) is dict:
            inner = self._dict_form(state["__dict__"], depth, attributes=True)
            rest = {name: state[name] for name in _OF_PYDANTIC}
            return self._exactly({"model": [inner, self._dict_form(rest, depth)]})
        if not self._older and type(value).__module__.startswith(_PACKAGE):
            state = _without_caches(value, state)
        if is_dataclass(value) and [*state] == [field.name for field in fields(value)]:
            return {
                "mapping": unordered_digest(self._entries(state.items(), depth, attributes=True))
            }
        return self._dict_form(state, depth, attributes=True)

    def _listed(self, items: Iterable[Any], depth: int) -> Any:
        return {"list": digest_of_form([self.form(item, depth) for item in items])}

    @override
    def _attribute_form(self, name: str, value: Any, depth: int) -> Any:
        form = super()._attribute_form(name, value, depth)
        secret = form is not None and _may_be_secret(value)
        return self._guarded(name, form) if secret and self._is_hidden(name, value) else form


def _without_caches(value: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an object without those that its cached properties have stored.

    So an operator of which some were read has the same digest as a new one. It holds for classes
    of the package alone: a user may assign a value where the class has a cached property.
    """
    return {
        name: item
        for name, item in state.items()
        if not isinstance(getattr(type(value), name, None), cached_property)
    }


def is_header(name: str) -> bool:
    """Return whether a name can only be that of a header of a request."""
    return "-" in name or name.lower() == "authorization"


def is_content(value: Any) -> bool:
    """Return whether an object is data, although it is closed or used in a ``with`` statement."""
    return type(value).__module__.partition(".")[0] in _CONTEXTS


def _may_be_secret(value: Any) -> bool:
    """Return whether a value can be guessed: no function, class or descriptor, and not empty."""
    if value is None or callable(value) or hasattr(type(value), "__get__"):
        return False
    return not issubclass(type(value), _EMPTIABLE) or len(value) > 0


def _is_text(value: Any) -> bool:
    """Return whether a value is a text, bytes, a secret of pydantic, or a list of them."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_one_text, value))
    return _is_one_text(value)


def _is_one_text(value: Any) -> bool:
    return isinstance(value, (str, bytes)) or callable(getattr(value, "get_secret_value", None))


def _state(value: Any) -> list[Any] | None:
    reduce: Callable[[Any], Any] = copyreg.dispatch_table.get(type(value), _reduce)
    try:
        return state_parts(value, reduce(value), _maker)
    except Exception:  # noqa: BLE001 - user objects may raise anything when pickled
        return None


def _reduce(value: Any) -> Any:
    return value.__reduce_ex__(2)


def _maker(maker: Any) -> Any:
    """Return the name of the function that rebuilds an object, or the function if it has none."""
    return maker if isinstance(maker, partial) else function_name(maker)


def _silent_state(value: Any) -> list[Any] | None:
    """Return the state of an iterator, whose support of pickle newer versions of Python warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return _state(value)


def _is_global(value: Any, name: str) -> bool:
    """Return whether a name by which pickle would find an object leads to it."""
    if type(value).__module__ == "typing":  # a type variable
        return True
    modules = (read_attribute(value, "__module__"), type(value).__module__)
    return any(_attribute_of(sys.modules.get(str(module)), name) is value for module in modules)


def _attribute_of(place: Any, name: str) -> Any:
    for part in name.split("."):
        place = getattr(place, part, None)
    return place
