"""RunFingerprint: the operator, options, code and input to which a checkpoint belongs."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dagster_dataops.checkpoints.journal.frames import FORMAT
from dagster_dataops.operators.definition.spec import Invocation, OperatorSpec

_UNKNOWN: Final = "unknown "  # followed by a random number and the reason
_WORDS: Final = {
    "format": "the checkpoint format",
    "operator": "the operator",
    "options": "its options",
    "code": "its code",
    "input": "the input",
}

CHANGEABLE: Final = ("options", "code")  # records can be kept on request if these have changed


@dataclass(frozen=True, slots=True)
class RunFingerprint:
    """The facts that must be equal for finished records to be used again."""

    format: str
    operator: str
    options: str
    code: str
    input: str

    @classmethod
    def of(cls, invocation: Invocation, input_identity: str) -> "RunFingerprint":
        """Return the fingerprint of running ``invocation`` over one input."""
        return cls(
            format=FORMAT,
            operator=_operator(invocation.spec),
            options=_options(invocation),
            code=invocation.spec.code_version,
            input=input_identity,
        )

    @classmethod
    def from_json(cls, parts: object) -> "RunFingerprint | None":
        """Return the fingerprint that `to_json` wrote; ``None`` if ``parts`` is malformed."""
        if not isinstance(parts, Mapping) or set(parts) != set(_WORDS):
            return None
        return cls(**{name: str(value) for name, value in parts.items()})

    @property
    def unknown(self) -> str:
        """The reason why records with these options cannot be reused; empty if they can."""
        return self.options.split(" ", 2)[2] if self.options.startswith(_UNKNOWN) else ""

    def to_json(self) -> dict[str, str]:
        """Return the parts by name."""
        return {name: getattr(self, name) for name in _WORDS}

    def differences(self, other: "RunFingerprint") -> list[str]:
        """Return the names of the parts that differ. Parts of another format cannot be compared."""
        if self.format != other.format:
            return ["format"]
        return [name for name in _WORDS if getattr(self, name) != getattr(other, name)]

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
