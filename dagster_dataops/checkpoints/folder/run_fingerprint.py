"""RunFingerprint: the operator, options, code and input to which a checkpoint belongs."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dagster_dataops.checkpoints.journal.frames import FORMAT
from dagster_dataops.operators.definition.spec import Invocation, OperatorSpec

_UNKNOWN: Final = "unknown "  # followed by a random number and the reason
_WORDS: Final = {
    "format": "the checkpoint format",
    "operator": "the operator",
    "options": "its options",
    "code": "its code",
    "input": "the input",
    "server": "the server of its model (see ModelClient.deployment)",
}
_OPTIONAL: Final = "server"  # left out if there is none, and by version 0.2

CHANGEABLE: Final = ("options", "code")  # records can be kept on request if these have changed


@dataclass(frozen=True, slots=True)
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
    """

    format: str
    operator: str
    options: str
    code: str
    input: str
    server: str = ""
    adopts: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, invocation: Invocation, input_identity: str) -> "RunFingerprint":
        """Return the fingerprint of running ``invocation`` over one input."""
        return cls(
            format=FORMAT,
            operator=_operator(invocation.spec),
            options=_options(invocation),
            code=invocation.spec.code_version,
            input=input_identity,
            server=invocation.server,
            adopts=invocation.adopts,
        )

    @classmethod
    def from_json(cls, parts: object) -> "RunFingerprint | None":
        """Return the fingerprint that `to_json` wrote; ``None`` if ``parts`` is malformed."""
        if not isinstance(parts, Mapping) or {*parts, _OPTIONAL} != set(_WORDS):
            return None
        texts: dict[str, Any] = {str(name): str(value) for name, value in parts.items()}
        return cls(**{"server": "", **texts})

    @property
    def unknown(self) -> str:
        """The reason why records with these options cannot be reused; empty if they can."""
        return self.options.split(" ", 2)[2] if self.options.startswith(_UNKNOWN) else ""

    def to_json(self) -> dict[str, str]:
        """Return the parts by name."""
        parts = {name: getattr(self, name) for name in _WORDS}
        return {name: text for name, text in parts.items() if text or name != _OPTIONAL}

    def differences(self, other: "RunFingerprint") -> list[str]:
        """Return the names of the parts that differ. Parts of another format cannot be compared.

        Args:
            other: The fingerprint of the run that would use these records.
        """
        if self.format != other.format:
            return ["format"]
        found = [name for name in _WORDS if getattr(self, name) != getattr(other, name)]
        adopted = other.adopts and not self.server
        return [name for name in found if name != _OPTIONAL or not adopted]

    def differs_from(self, kept: Iterable[Mapping[str, str]]) -> list[str]:
        """Return the parts in which any run of `Manifest.kept_from` differs."""
        return [
            part for part in CHANGEABLE if any(run.get(part) != getattr(self, part) for run in kept)
        ]


def _operator(spec: OperatorSpec) -> str:
    """Return the name, with the outputs: dispositions hold their positions."""
    if not spec.outputs:
        return spec.qualified_name
    return f"{spec.qualified_name} with the outputs {', '.join(spec.outputs)}"


def _options(invocation: Invocation) -> str:
    if not invocation.unknown_options:
        return invocation.options_digest
    why = (
        f"the value of option {' and '.join(invocation.unknown_options)} cannot be compared; pass "
        "plain values to construct it from, or annotate the parameter as "
        "Annotated[..., Operational] if no result depends on it"
    )
    return f"{_UNKNOWN}{uuid.uuid4().hex} {why}"


def in_words(parts: list[str]) -> str:
    """Return the parts of a fingerprint in words."""
    return " and ".join(_WORDS[part] for part in parts)
