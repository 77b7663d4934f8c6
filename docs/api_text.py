"""The public names of the package as Markdown, for readers without the site.

`expanded` replaces the directives of the reference, those of Sphinx's autodoc, by signatures and
docstrings.
"""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pydoc import locate
from typing import Any, Final

_DIRECTIVE: Final = re.compile(
    r"^\.\. (?P<kind>[\w:]+):: (?P<name>\S+)\n(?P<body>(?:[ \t]+\S.*\n|\n(?=[ \t]))*)", re.MULTILINE
)
_OPTION: Final = re.compile(r"^ +:([\w-]+):(.*)$", re.MULTILINE)
_CODE: Final = re.compile(r"``(.+?)``", re.DOTALL)
_ROLE: Final = re.compile(r":\w+:`([^`]+)`")
_PACKAGE: Final = "dagster_dataops"


def expanded(directives: str) -> str:
    """Return Markdown for a block of directives.

    Raises:
        ValueError: A directive is not known here.
    """
    return "\n".join("\n".join(_described(found)) for found in _DIRECTIVE.finditer(directives))


def _described(found: re.Match[str]) -> Iterator[str]:
    kind, name, body = found["kind"], found["name"], found["body"]
    options = {option: names.strip() for option, names in _OPTION.findall(body)}
    if kind in {"py:data", "autodata"}:
        text = inspect.cleandoc(body) if kind == "py:data" else _docstring(_object(name))
        yield from (f"### `{name}`", "", _markdown(text), "")
    elif kind == "automodule":
        yield from _module(name, options)
    elif kind in {"autoclass", "autoexception", "autofunction", "automethod"}:
        yield from _named(name, _object(name), options)
    else:
        msg = f"llms-full.txt cannot show the directive {kind!r} of {name}"
        raise ValueError(msg)


def _object(name: str) -> Any:
    """Return a public name, or a member of one."""
    found = locate(name)
    if found is None:
        msg = f"the reference names {name}, which cannot be imported"
        raise ValueError(msg)
    return found


def _module(name: str, options: dict[str, str]) -> Iterator[str]:
    if "members" not in options:
        return
    module = import_module(name)
    hidden = options.get("exclude-members", "").split()
    for member, value in vars(module).items():
        own = getattr(value, "__module__", None) == name or member in getattr(module, "__all__", ())
        if own and not member.startswith("_") and member not in hidden and callable(value):
            yield from _named(f"{name}.{member}", value, {})


def _named(name: str, value: Any, options: dict[str, str]) -> Iterator[str]:
    yield from (f"### `{name}{_signature(value)}`", "", _markdown(_docstring(value)), "")
    fields = getattr(value, "model_fields", {}) if inspect.isclass(value) else {}
    described = [f"- `{key}`: {one.description}" for key, one in fields.items() if one.description]
    yield from (*described, "") if described else ()
    for member in _members(value, options):
        found = inspect.getattr_static(value, member)
        text = _docstring(getattr(value, member))
        if text and not (isinstance(found, property) and member in fields):
            called = "" if isinstance(found, property) else _signature(getattr(value, member))
            last = name.rpartition(".")[2]
            yield from (f"#### `{last}.{member}{called}`", "", _markdown(text), "")


def _members(value: Any, options: dict[str, str]) -> list[str]:
    """Return the members that the options of the directive ask for."""
    if "members" not in options:
        return options.get("special-members", "").split()
    if options["members"]:
        return [name.strip() for name in options["members"].split(",")]
    bases = value.__mro__ if "inherited-members" in options else (value,)
    ours = [one for one in bases if one.__module__.startswith(_PACKAGE)]
    names = [name for base in ours for name in vars(base) if not name.startswith("_")]
    hidden = options.get("exclude-members", "").split()
    return [
        name
        for name in dict.fromkeys(names)
        if name not in hidden and _has_own_text(inspect.getattr_static(value, name))
    ]


def _has_own_text(member: Any) -> bool:
    kinds = (property, classmethod, staticmethod)
    return inspect.isroutine(member) or isinstance(member, kinds)


def _signature(value: Any) -> str:
    """Return the signature, without the types: the docstring gives them where they matter."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    empty = inspect.Parameter.empty
    plain = [
        one.replace(annotation=empty, default=_Hidden() if _is_object(one.default) else one.default)
        for one in found.parameters.values()
        if one.name not in {"self", "cls"}
    ]
    if inspect.isclass(value) and issubclass(value, BaseException):
        return ""
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))


class _Hidden:
    """The default of a parameter that only its name in the code can show."""

    def __repr__(self) -> str:
        return "..."


def _is_object(default: object) -> bool:
    return default is not inspect.Parameter.empty and repr(default).startswith("<")


def _docstring(value: Any) -> str:
    return inspect.getdoc(value) or ""


def _markdown(text: str) -> str:
    return _ROLE.sub(r"`\1`", _CODE.sub(r"`\1`", text))
