"""RunFingerprint: to which operator, options, code and input a checkpoint belongs."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dagster_dataops.operators.spec import Invocation

FORMAT: Final = f"2-{sys.byteorder}"
_WORDS: Final = {
    "format": "the checkpoint format",
    "operator": "the operator",
    "options": "its options",
    "code": "its code",
    "input": "the input",
}

CHANGEABLE: Final = ("options", "code")  # across a change of these, records are kept if asked for


@dataclass(frozen=True, slots=True)
class RunFingerprint:
    """What must be equal for finished records to be used again."""

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
            operator=invocation.spec.qualified_name,
            options=invocation.options_digest,
            code=invocation.spec.code_version,
            input=input_identity,
        )

    @classmethod
    def from_json(cls, parts: object) -> "RunFingerprint | None":
        """Return the fingerprint that `to_json` wrote, or ``None`` if ``parts`` is none."""
        if not isinstance(parts, Mapping) or set(parts) != set(_WORDS):
            return None
        return cls(**{name: str(value) for name, value in parts.items()})

    def to_json(self) -> dict[str, str]:
        """Return the parts by name."""
        return {name: getattr(self, name) for name in _WORDS}

    def differences(self, other: "RunFingerprint") -> list[str]:
        """Return the names of the parts that differ."""
        return [name for name in _WORDS if getattr(self, name) != getattr(other, name)]

    def differs_from(self, kept: Iterable[Mapping[str, str]]) -> list[str]:
        """Return in which parts any run of ``kept`` differs, as `Manifest.kept_from` has them."""
        return [
            part for part in CHANGEABLE if any(run.get(part) != getattr(self, part) for run in kept)
        ]


def in_words(parts: list[str]) -> str:
    """Return the parts of a fingerprint as a person would name them."""
    return " and ".join(_WORDS[part] for part in parts)
