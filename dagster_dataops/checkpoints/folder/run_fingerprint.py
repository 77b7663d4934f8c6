"""RunFingerprint: the operator, options, code and input to which a checkpoint belongs."""

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import partial
from typing import Any, Final, TypeAlias

from dagster_dataops.checkpoints.journal.frames import FORMAT
from dagster_dataops.checkpoints.journal.journal_reader import is_read
from dagster_dataops.foundation.frozen import frozen
from dagster_dataops.foundation.hashing.values import RULES
from dagster_dataops.operators.definition.spec import Invocation, OperatorSpec

_UNKNOWN: Final = "unknown "  # followed by a random number and the reason
_WORDS: Final = {
    "format": "the checkpoint format",  # the only part that is not compared: see `is_read`
    "operator": "the operator",
    "options": "its options",
    "code": "its code",
    "input": "the input",
    "server": "the server of its model (see ModelClient.deployment)",
    "files": "the files of its options",  # counts as part of the options
}
_PARTS: Final = tuple(name for name in _WORDS if name not in {"format", "files"})
_OPTIONAL: Final = frozenset({"server", "files"})  # left out if there is none, and by version 0.2

Earlier: TypeAlias = Callable[[str], str]
CHANGEABLE: Final = ("options", "code")  # records can be kept on request if these have changed


def _no_digest(_part: str) -> str:
    """Return that version 0.2 had no such digest."""
    return ""


def _earlier(invocation: Invocation, part: str) -> str:
    """Return the digest of a part that version 0.2 had."""
    return invocation.earlier_options if part == "options" else invocation.spec.earlier_code


@frozen(eq=True, kw_only=False)
class RunFingerprint:
    """The facts that must be equal for finished records to be used again.

    Attributes:
        format: The format of checkpoints.
        operator: The operator.
        options: Its options.
        code: Its code.
        input: The input.
        server: The server of models that it asks; empty for none.
        adopts: Whether records of version 0.2, which do not name their server, are of this one.
        earlier: Returns the digest of options or code that version 0.2 had, by the name of the
            part; empty if that version left more out than the class and the order of containers.
        files: The digests of the files that options name, which count in the digest of the options:
            a line for each option.
    """

    format: str
    operator: str
    options: str
    code: str
    input: str
    server: str = ""
    adopts: bool = field(default=False, compare=False)
    earlier: Earlier = field(default=_no_digest, compare=False, repr=False)
    files: str = field(default="", compare=False)

    @classmethod
    def of(cls, invocation: Invocation, input_identity: str) -> "RunFingerprint":
        """Return the fingerprint of running ``invocation`` over one input."""
        return cls(
            format=FORMAT,
            operator=_operator(invocation.spec),
            options=_known_or_not(invocation.options_digest, unknown_options(invocation)),
            code=_known_or_not(invocation.spec.code_version, unknown_constants(invocation)),
            input=input_identity,
            server=invocation.server,
            adopts=invocation.adopts,
            earlier=partial(_earlier, invocation),
            files=_files(invocation),
        )

    @classmethod
    def from_json(cls, parts: object) -> "RunFingerprint | None":
        """Return the fingerprint that `to_json` wrote; ``None`` if ``parts`` is malformed.

        Parts that this version does not know may distinguish runs, so they are not ignored.
        """
        if not isinstance(parts, Mapping) or {*parts, *_OPTIONAL} != set(_WORDS):
            return None
        texts: dict[str, Any] = {str(name): str(value) for name, value in parts.items()}
        return cls(**texts)

    @property
    def unknown(self) -> str:
        """The reason why records of this run cannot be reused; empty if they can."""
        unknown_parts = [part for part in (self.options, self.code) if is_unknown(part)]
        return "; ".join(part.split(" ", 2)[2] for part in unknown_parts)

    def to_json(self) -> dict[str, str]:
        """Return the parts by name."""
        parts = {name: getattr(self, name) for name in _WORDS}
        return {name: text for name, text in parts.items() if text or name not in _OPTIONAL}

    def differences(self, other: "RunFingerprint") -> list[str]:
        """Return the names of the parts that differ. Parts of an unknown format are not compared.

        Args:
            other: The fingerprint of the run that would use these records.
        """
        if not is_read(self.format):
            return ["format"]
        names = [name for name in _PARTS if getattr(self, name) != getattr(other, name)]
        return [name for name in names if not other.is_of_version_0_2(name, self)]

    def is_of_version_0_2(self, name: str, stored: "RunFingerprint") -> bool:
        """Return whether version 0.2 has stored a part, and would have stored it for this run."""
        if name == "server":
            return self.adopts and not stored.server
        if name not in CHANGEABLE or self.unknown:
            return False
        return bool(getattr(stored, name) == self.earlier(name))

    def compared_anew(self, other: "RunFingerprint") -> list[str]:
        """Return the parts that one version of the package compares by rules of its own."""
        pairs = [(part, getattr(self, part), getattr(other, part)) for part in CHANGEABLE]
        return [part for part, first, two in pairs if first.endswith(RULES) != two.endswith(RULES)]

    def files_changed(self, other: "RunFingerprint") -> list[str]:
        """Return the options whose file has another content in another run, in their order."""
        before, after = (
            dict(map(_option_and_digest, part.files.splitlines())) for part in (self, other)
        )
        return [name for name in before if before[name] != after.get(name, before[name])]

    def differs_from(self, kept: Iterable[Mapping[str, str]]) -> list[str]:
        """Return the parts in which any run of `Manifest.kept_from` differs."""
        return [
            part for part in CHANGEABLE if any(run.get(part) != getattr(self, part) for run in kept)
        ]


def _files(invocation: Invocation) -> str:
    """Return the options that name files, each with the digest of these."""
    parts = [f"{name}." for name, _ in invocation.spec.parts] or [""]
    uses = zip(parts, invocation.uses, strict=True)
    return "\n".join(
        f"{part}{name} {digest}" for part, use in uses for name, digest in use.files.items()
    )


def _option_and_digest(line: str) -> tuple[str, str]:
    name, _, digest = line.rpartition(" ")
    return name, digest


def _operator(spec: OperatorSpec) -> str:
    """Return the name, with the outputs: dispositions hold their positions."""
    if not spec.outputs:
        return spec.qualified_name
    return f"{spec.qualified_name} with the outputs {', '.join(spec.outputs)}"


def unknown_options(invocation: Invocation) -> str:
    """Return that options cannot be compared, and what to do; empty if all can."""
    if not invocation.unknown_options:
        return ""
    return (
        f"the value of option {' and '.join(invocation.unknown_options)} cannot be compared; pass "
        "plain values to construct it from, or annotate the parameter as "
        "Annotated[..., Operational] if no result depends on it"
    )


def unknown_constants(invocation: Invocation) -> str:
    """Return that constants of the code cannot be compared, and what to do; empty if all can."""
    unknown = invocation.spec.code.unknown
    if not unknown:
        return ""
    return (
        f"the constant {' and '.join(unknown)} cannot be compared; construct it in open() or when "
        "it is first used, or annotate it as Annotated[Any, Operational] if no result depends on it"
    )


def other_parts(parts: object) -> list[str]:
    """Return the names of parts of a stored fingerprint that this version does not know."""
    return sorted(map(str, set(parts) - set(_WORDS))) if isinstance(parts, Mapping) else []


def is_unknown(part: str) -> bool:
    """Return whether a part of a fingerprint equals no other."""
    return part.startswith(_UNKNOWN)


def _known_or_not(digest: str, why: str) -> str:
    return f"{_UNKNOWN}{uuid.uuid4().hex} {why}" if why else digest


def in_words(parts: list[str]) -> str:
    """Return the parts of a fingerprint in words."""
    return " and ".join(_WORDS[part] for part in parts)
