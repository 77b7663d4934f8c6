"""DeclaredCheck: a check of a published file, declared for the asset of a node or source."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

import dagster as dg

from dagster_dataops.assets.checks.inspectors import Inspector
from dagster_dataops.assets.checks.severity import Severity, severity_of
from dagster_dataops.errors import ConfigurationError

NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]+")  # characters that no check name may hold


class DeclaredCheck(ABC):
    """A check that was declared for an asset.

    A subclass is one kind of check. Its constructor takes the arguments of the check and the
    keywords ``name``, ``severity`` and ``blocking``.

    Args:
        name: Unique among the checks of the asset.
        description: The condition that is checked, as a sentence.
        severity: Severity if the check fails, ``WARN`` or ``ERROR``; ``ERROR`` by default.
        blocking: Whether a failed check stops the assets downstream.

    Attributes:
        kind: The name of the check in ``checks`` and in a defs.yaml.
        yaml: The JSON Schema of the value in a defs.yaml, with ``description`` and ``examples``.
        yaml_path: Whether a text in a defs.yaml is a path, relative to the folder of that file.

    Raises:
        ConfigurationError: The name or the severity is invalid.
    """

    kind: ClassVar[str]
    yaml: ClassVar[Mapping[str, Any]]
    yaml_path: ClassVar[bool] = False

    def __init__(
        self, name: str, description: str, severity: Severity | None, *, blocking: bool
    ) -> None:
        if not name or NOT_IN_NAMES.search(name):
            wanted = "made of ASCII letters, digits and underscores"
            raise ConfigurationError("name of a check", name, wanted)
        self.name = name
        self.description = description
        self.severity = severity_of(severity, blocking=blocking, default="ERROR")
        self.blocking = blocking

    @classmethod
    def from_yaml(cls, value: Any, **options: Any) -> Self:
        """Return the check for the value of its field in a defs.yaml, and its other options."""
        return cls(value, **options)

    @abstractmethod
    def inspector(self) -> Inspector:
        """Return an inspector for one file; a new one unless it is stateless."""

    def spec(self, key: dg.AssetKey) -> dg.AssetCheckSpec:
        """Return the spec of the check on an asset."""
        return dg.AssetCheckSpec(
            self.name, asset=key, description=self.description, blocking=self.blocking
        )
