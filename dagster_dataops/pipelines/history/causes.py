"""Causes: the parts of the identity of two results that differ, by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.foundation.hashing.code_parts import CONSTANT, MODULE, PACKAGE
from dagster_dataops.foundation.override import override

_NO_VALUE: Final = object()
_BATCHES: Final = "_batch_size"
_FILE: Final = "file of "
_OLD: Final = (
    "which part cannot be known: a version of this package that did not note it wrote one of the "
    "results"
)


@dataclass(frozen=True)
class Cause:
    """A part of the identity of two results that differs.

    Attributes:
        kind: ``option``, ``code``, ``package``, ``operator``, ``server``, ``input``, ``kept`` for
            records of earlier runs; if nothing of this differs, ``reply`` of a model or ``chance``.
        name: The option, function, class, constant, module or package; may be empty.
        text: What has changed, in words. Hidden values are not shown.
    """

    kind: str
    name: str
    text: str

    @override
    def __str__(self) -> str:
        return self.text


def causes_between(before: Manifest, after: Manifest) -> list[Cause]:
    """Return what differs between two results, except for their inputs."""
    return list(_differing(before, after))


def cause_otherwise(after: Manifest) -> Cause:
    """Return the cause of a difference between results of equal operator, code and input."""
    if after.made_from.get("server"):
        return Cause("reply", "", "the reply of the model")
    text = (
        "nothing that is known: operator, options, code and input record are the same; the "
        "operator depends on something else, such as chance, time or a service"
    )
    return Cause("chance", "", text)


def _differing(before: Manifest, after: Manifest) -> Iterator[Cause]:
    old, new = before.made_from, after.made_from
    if old.get("operator", before.operator) != new.get("operator", after.operator):
        text = f"the operator: {before.operator} became {after.operator}"
        yield Cause("operator", after.operator, text)
    if old.get("options") != new.get("options"):
        yield from _options(before, after)
    if old.get("code") != new.get("code"):
        yield from _code(before, after)
    if old.get("server", "") != new.get("server", ""):
        shown = [made_from.get("server") or "not noted" for made_from in (old, new)]
        yield Cause("server", "", f"the server of the model: {shown[0]} became {shown[1]}")
    runs = [run.get("run", "") for run in (*before.kept_from, *after.kept_from)]
    if runs:
        text = (
            f"records that were kept on request from runs with other options or code: "
            f"{', '.join(dict.fromkeys(runs))}"
        )
        yield Cause("kept", "", text)


def _options(before: Manifest, after: Manifest) -> Iterator[Cause]:
    names = _changed(before, after, "options")
    if names is None:
        names = [
            name
            for name in _ordered(before.options, after.options)
            if before.options.get(name, _NO_VALUE) != after.options.get(name, _NO_VALUE)
        ]
        if not names:
            yield Cause("option", "", f"its options; {_OLD}")
    for name in names or ():
        yield Cause("option", name.removeprefix(_FILE), _option_text(name, before, after))
    if names == []:
        yield Cause("option", "", "its options, in a value that cannot be compared")


def _option_text(name: str, before: Manifest, after: Manifest) -> str:
    if name.startswith(_FILE):
        return f"the content of the file of option {name.removeprefix(_FILE)}"
    if name == _BATCHES:
        sizes = [
            manifest.identity_parts.get("options", {}).get(name, "none")
            for manifest in (before, after)
        ]
        return f"{_BATCHES}: {sizes[0]} became {sizes[1]}"
    defaults = before.defaults | after.defaults
    shown = [_shown_option(manifest.options, name, defaults) for manifest in (before, after)]
    if shown[0] == shown[1]:
        return f"option {name}: its value has changed, which is shown as {shown[1]} both times"
    return f"option {name}: {shown[0]} became {shown[1]}"


def _shown_option(options: Mapping[str, Any], name: str, defaults: Mapping[str, Any]) -> str:
    """Return the value of an option, or its default, as it was shown."""
    value = options.get(name, defaults.get(name, _NO_VALUE))
    if value is _NO_VALUE:
        return "its default"
    return orjson.dumps(value).decode()


def _code(before: Manifest, after: Manifest) -> Iterator[Cause]:
    names = _changed(before, after, "code")
    if not names:
        why = _OLD if names is None else "in a part that has no name"
        yield Cause("code", "", f"its code; {why}")
        return
    known = [manifest.identity_parts["code"] for manifest in (before, after)]
    for name in names:
        yield _code_cause(name, *(parts.get(name) for parts in known))


def _code_cause(name: str, before: str | None, after: str | None) -> Cause:
    verb = "has changed"
    if before is None or after is None:
        verb = "is used now" if before is None else "is not used any more"
    for start, kind in ((CONSTANT, "constant"), (MODULE, "module"), (PACKAGE, "package")):
        if name.startswith(start):
            short = name.removeprefix(start)
            if kind == "package" and before and after:
                return Cause("package", short, f"the package {short}: {before} became {after}")
            return Cause("package" if kind == "package" else "code", short, f"{name} {verb}")
    return Cause("code", name, f"the code of {name} {verb}")


def _changed(before: Manifest, after: Manifest, kind: str) -> list[str] | None:
    """Return the names of the parts that differ; ``None`` if a result has no digests of them."""
    parts = [manifest.identity_parts.get(kind) for manifest in (before, after)]
    if parts[0] is None or parts[1] is None:
        return None
    old, new = parts[0], parts[1]
    return [
        name
        for name in _ordered(old, new)
        if old.get(name) != new.get(name) or not (old.get(name) and new.get(name))
    ]


def _ordered(*mappings: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(name for mapping in mappings for name in mapping))
