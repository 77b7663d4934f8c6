"""PathPattern: map partition keys to file paths, and file names to partition keys."""

import glob
import re
import string
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote, unquote

import dagster as dg

from dagster_dataops.assets.inputs.window_formats import WindowFormats
from dagster_dataops.errors import ConfigurationError, InputError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.url_forms import ObjectUrl, is_url

PLACEHOLDER: Final = "partition"
# Characters that Dagster refuses in a key or a database cannot store, and the escape character.
_UNSAFE: Final = re.compile(r"\.{3,}|[%\x00-\x1f\x7f\ud800-\udfff]")
_WINDOWS: Final = re.compile(
    r"(?:^|/)(?:[A-Za-z]:|\\)\\"
)  # the start of an absolute path on Windows


class PathPattern:
    """A path such as ``docs/{partition}.jsonl``: one file for each partition.

    ``{partition}`` stands for the partition's key. For time windows ``{partition:%Y/%m/%d}`` is the
    start of the window in that format. Several dimensions are named one by one, such as
    ``{color}/{size}.jsonl``.

    ``allow_missing`` tells whether a reader of all partitions skips those without a file.

    Raises:
        ConfigurationError: The path does not name exactly the dimensions of the partitions, or its
            date format gives two time windows the same file.
    """

    def __init__(
        self, text: str, partitions: dg.PartitionsDefinition, *, allow_missing: bool = False
    ) -> None:
        self.text = _absolute(text)
        self.partitions = partitions
        self.allow_missing = allow_missing
        known = _dimensions(partitions)
        fields = _fields(self.text)
        if set(fields) != set(known):
            wanted = "a path with " + " and ".join(f"{{{name}}}" for name in known)
            raise ConfigurationError("source", text, f"{wanted}: one file for each partition")
        self._windows = dict(_windows_in(self.text, partitions))
        for windows, formats in self._windows.values():
            first = windows.get_first_partition_key()
            other = first and formats.same(first)
            if other:
                allowed = f"a path with one file for each partition; {first} and {other} share one"
                raise ConfigurationError("source", text, allowed)

    @override
    def __str__(self) -> str:
        return self.text

    @property
    def uri(self) -> str:
        """The URI of the folder that contains all files."""
        folder = self.text.partition("{")[0].rpartition("/")[0]
        return folder if is_url(self.text) else Path(folder or "/").as_uri()

    @property
    def name(self) -> str:
        """A name for the asset of these files: their name or folder without the key."""
        literals = "".join(text for text, *_ in string.Formatter().parse(self.text))
        separators = r"[/\\]" if _WINDOWS.search(literals) else "/"
        for part in reversed(re.split(separators, literals)):
            name = part.removesuffix(".jsonl").strip("-_. ")
            if name:
                return re.sub(r"[^A-Za-z0-9_]", "_", name)
        return "files"

    def path(self, key: str) -> Path | ObjectUrl:
        """Return the file of a partition.

        Raises:
            InputError: The key leads to another folder, or its file is that of another partition.
        """
        for name, (_, formats) in self._windows.items():
            part = _parts(key, self.partitions)[name]
            if other := formats.same(part):
                reason = (
                    f"its file is also that of {other}: {self.text} gives both the same name; "
                    f"write {{{name}}}, or a date format that tells them apart, such as one with %z"
                )
                raise InputError(f"of partition {key!r}", reason)
        text = self.text.format(**_values(key, self.partitions))
        return ObjectUrl(text) if is_url(text) else Path(text)


SourceFile: TypeAlias = Path | ObjectUrl | PathPattern
"""The file of a source, or one for each partition."""


def is_pattern(text: str) -> bool:
    """Return whether a path names a partition by ``{partition}``."""
    try:
        return PLACEHOLDER in _fields(text)
    except ConfigurationError:  # a file name with braces
        return False


def matching(pattern: str) -> Iterator[tuple[str, Path]]:
    """Yield partition key and path of every file that matches a pattern, without hidden files.

    Raises:
        ConfigurationError: The pattern has another placeholder than ``{partition}``.
    """
    text = _absolute(pattern)
    fits = key_finder(text)
    wildcards = "".join(
        glob.escape(literal) + ("" if name is None else "*")
        for literal, name, _, _ in string.Formatter().parse(text)
    )
    for path in glob.iglob(wildcards):  # noqa: PTH207 - Path.glob would show hidden files
        key = fits(path)
        if key is not None:
            yield key, Path(path)


def key_finder(pattern: str) -> Callable[[str], str | None]:
    """Return a function that returns the partition key of a path, if it matches the pattern.

    Raises:
        ConfigurationError: The pattern has another placeholder than ``{partition}``.
    """
    pieces = list(string.Formatter().parse(pattern))
    if set(_fields(pattern)) != {PLACEHOLDER} or any(spec for _, _, spec, _ in pieces):
        raise ConfigurationError("pattern", pattern, "a path with {partition}, without a format")
    expression, group = "", f"(?P<{PLACEHOLDER}>[^/]+)"
    for literal, name, _, _ in pieces:
        expression += re.escape(literal)
        if name is not None:
            expression, group = expression + group, f"(?P={PLACEHOLDER})"
    fits = re.compile(expression, re.DOTALL).fullmatch

    def key_of(path: str) -> str | None:
        match = fits(path)
        return None if match is None else key_of_name(match[PLACEHOLDER])

    return key_of


def key_of_name(name: str) -> str:
    """Return the partition key for a file name: the name, with unsafe characters escaped.

    Different names have different keys; `name_of_key` is the inverse.
    """
    return _UNSAFE.sub(lambda match: _escaped(match[0]), name)


def _escaped(text: str) -> str:
    dots = text.startswith(".")
    return "%2E" * len(text) if dots else quote(text, safe="", errors="surrogateescape")


def name_of_key(key: str) -> str:
    """Return the file name for a partition key; the inverse of `key_of_name`."""
    return unquote(key, errors="surrogateescape")


def _absolute(text: str) -> str:
    if is_url(text):
        return text
    path = Path(text).expanduser()
    if path.is_absolute():
        return str(path)
    here = str(Path.cwd()).replace("{", "{{").replace("}", "}}")
    return f"{here}/{path}"


class _Window(str):
    """The key of a time window; a date format prints the start of the window."""

    __slots__ = ("window",)

    window: dg.TimeWindow

    @override
    def __format__(self, spec: str) -> str:
        return self.window.start.strftime(spec) if spec else str(self)


def _values(key: str, partitions: dg.PartitionsDefinition) -> dict[str, str]:
    parts, dimensions = _parts(key, partitions), _dimensions(partitions)
    return {name: _value(parts[name], definition) for name, definition in dimensions.items()}


def _parts(key: str, partitions: dg.PartitionsDefinition) -> Mapping[str, str]:
    """Return the parts of a key by the names of their placeholders."""
    if isinstance(partitions, dg.MultiPartitionsDefinition):
        return dimensions_of(key, partitions)
    return {PLACEHOLDER: key}


def _windows_in(
    text: str, partitions: dg.PartitionsDefinition
) -> Iterator[tuple[str, tuple[dg.TimeWindowPartitionsDefinition, WindowFormats]]]:
    """Yield the time windows that a path names by date formats alone, by name."""
    formats: dict[str, list[str]] = {}
    for _, name, spec, _ in string.Formatter().parse(text):
        if name is not None:
            formats.setdefault(name, []).append(spec or "")
    for name, definition in _dimensions(partitions).items():
        if isinstance(definition, dg.TimeWindowPartitionsDefinition) and all(formats[name]):
            yield name, (definition, WindowFormats(definition, formats[name]))


def _value(key: str, partitions: dg.PartitionsDefinition) -> str:
    if isinstance(partitions, dg.TimeWindowPartitionsDefinition):
        value = _Window(key)
        value.window = partitions.time_window_for_partition_key(key)
        return value
    name = name_of_key(key)
    if "\0" in name or any(part in {"", ".", ".."} for part in name.split("/")):
        raise InputError(f"of partition {key!r}", "its key leads to another folder")
    return name


def dimensions_of(key: str, definition: dg.MultiPartitionsDefinition) -> Mapping[str, str]:
    """Return the parts of a multi-dimensional key by the name of the dimension."""
    if isinstance(key, dg.MultiPartitionKey):
        return key.keys_by_dimension
    names = sorted(dimension.name for dimension in definition.partitions_defs)
    return dict(zip(names, key.split("|"), strict=True))


def _dimensions(partitions: dg.PartitionsDefinition) -> dict[str, dg.PartitionsDefinition]:
    """Return the dimensions of partitions by the names of their placeholders."""
    if isinstance(partitions, dg.MultiPartitionsDefinition):
        return {
            dimension.name: dimension.partitions_def for dimension in partitions.partitions_defs
        }
    return {PLACEHOLDER: partitions}


def _fields(text: str) -> list[str]:
    try:
        return [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise ConfigurationError("source", text, f"a path with {{partition}} ({error})") from None
