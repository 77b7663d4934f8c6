"""The card of a dataset: its YAML, and a section with the steps that made it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import orjson

from dagster_dataops import __version__
from dagster_dataops.checkpoints.folder.check_outcomes import CheckOutcome, outcomes_of
from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.datasets.published_files import is_result, manifest_of, node_of
from dagster_dataops.datasets.remote_input import input_location
from dagster_dataops.errors import DataOpsError, DefinitionError
from dagster_dataops.foundation.places.bucket import Location, local_path
from dagster_dataops.readers.huggingface.hub_conventions import split_files

_SIZES: Final = (
    "n<1K",
    "1K<n<10K",
    "10K<n<100K",
    "100K<n<1M",
    "1M<n<10M",
    "10M<n<100M",
    "100M<n<1B",
    "1B<n<10B",
    "10B<n<100B",
    "100B<n<1T",
    "n>1T",
)
"""Categories of the Hub; each begins at ten times as many records as the one before."""
_MOST_STEPS: Final = 200  # that are listed
_SHARD: Final = re.compile(r"data/(\w+)-\d{5}-of-\d{5}\.parquet")
_ROWS: Final = re.compile(r"<!-- dataops:begin (\w+) -->\n(?:.*\n){2}([\d,]+) records")
"""Splits of the sections of a card, and their numbers of records."""
_SHOWN: Final = 8  # characters of a digest
_ABSOLUTE: Final = re.compile(r"@?(/|~\w*/|file:/|[A-Za-z]:[\\/]|\\\\\w)")  # how a path begins


class Step(NamedTuple):
    """A node of the pipeline, or a file that it began with.

    Attributes:
        name: Name of the node, or of the file.
        manifest: Facts about its result; ``None`` for a file.
        source: What identifies the file; empty for a node.
        checks: The known outcomes of the checks of its result, by name.
    """

    name: str
    manifest: Manifest | None
    source: str = ""
    checks: Mapping[str, CheckOutcome] = MappingProxyType({})


class Card(NamedTuple):
    """The facts about a split on the card of a dataset.

    Attributes:
        split: Name of the split.
        rows: Number of records.
        steps: The steps that made the records, each after the steps before it.
        license: Name of the licence; ``None`` leaves the card as it is.
        languages: Codes of languages; ``None`` leaves the card as it is.
    """

    split: str
    rows: int
    steps: Sequence[Step]
    license: str | None = None
    languages: Sequence[str] | None = None

    def written(self, before: str, paths: Iterable[str]) -> str:
        """Return the text of the card with the facts; all else in it stays as it is.

        Args:
            before: The present text; empty if there is none.
            paths: The files of the dataset before the push.
        """
        from huggingface_hub import DatasetCard

        card = DatasetCard(before or "---\n{}\n---\n")
        data: Any = card.data
        card.text = self._with_section(card.text)
        facts = self._facts(data.to_dict(), paths)
        rows = _rows_of(card.text, facts["configs"])
        if rows is not None:
            facts["size_categories"] = [size_of(rows)]
        for key, value in facts.items():
            data[key] = value
        return str(card)

    def _facts(self, known: dict[str, Any], paths: Iterable[str]) -> dict[str, Any]:
        """Return the values of the keys of the YAML that change."""
        configs = [dict(config) for config in known.get("configs") or []]
        if not configs:  # the card would hide the splits that it does not list
            splits = {shard[1] for path in paths if (shard := _SHARD.fullmatch(path))}
            configs = [{"config_name": "default", "data_files": list(map(_entry, splits))}]
        default = _default(configs)
        if str(default.get("data_dir") or ".").strip("./"):
            name, folder = default.get("config_name", "default"), default["data_dir"]
            msg = f"the card of the dataset has data_dir {folder!r} in its configuration {name!r}, "
            raise DefinitionError(
                f"{msg}which hides the files of the push below data/; remove data_dir from the "
                "card, and write it into the paths of data_files"
            )
        entries = split_files(default.get("data_files"))
        others = [entry for entry in entries if entry.get("split") != self.split]
        files = [*others, _entry(self.split)]
        default["data_files"] = sorted(files, key=lambda entry: str(entry["split"]))
        facts: dict[str, Any] = {"configs": configs}
        if self.license is not None:
            facts["license"] = self.license
        if self.languages is not None:
            facts["language"] = list(self.languages)
        return facts

    def _with_section(self, text: str) -> str:
        begin, end = f"<!-- dataops:begin {self.split} -->", f"<!-- dataops:end {self.split} -->"
        section = "\n".join([begin, *self._lines(), end])
        before, mark, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if mark and closed:
            return f"{before}{section}{after}"
        return f"{text.rstrip()}\n\n{section}\n".lstrip("\n")

    def _lines(self) -> Iterator[str]:
        yield f"## How the split `{self.split}` was made"
        yield ""
        yield f"{self.rows:,} records, made by dagster-dataops {__version__}."
        steps = self.steps[-_MOST_STEPS:]
        if len(steps) < len(self.steps):
            yield ""
            yield f"The last {len(steps)} steps are listed; those before are left out."
        nodes = [(step.name, step.manifest) for step in steps if step.manifest is not None]
        if nodes:
            yield ""
            yield (
                "| step | operator | records in | out | dropped | failed | digest of options "
                "| digest of code |"
            )
            yield "|---|---|---|---|---|---|---|---|"
        for name, manifest in nodes:
            yield _row(name, manifest)
        yield from _options_of(nodes)
        yield from _checks_of(steps)
        reasons = [(name, manifest.drops) for name, manifest in nodes if manifest.drops]
        if reasons:
            yield ""
            yield "Records that were dropped, by reason:"
            yield ""
        for name, drops in reasons:
            listed = ", ".join(f"{_plain(reason)} {count:,}" for reason, count in drops.items())
            yield f"- {_plain(name)}: {listed}"
        sources = [step for step in steps if step.source]
        if sources:
            yield ""
            yield "Sources:"
            yield ""
        for step in sources:
            yield f"- {_plain(step.name)} ({_plain(step.source)})"


def _rows_of(text: str, configs: list[dict[str, Any]]) -> int | None:
    """Return the number of records of a dataset; ``None`` if the card has no section for some."""
    numbers = {split: int(rows.replace(",", "")) for split, rows in _ROWS.findall(text)}
    splits = [entry["split"] for entry in _default(configs)["data_files"]]
    if len(configs) > 1 or not numbers.keys() >= set(splits):
        return None
    return sum(numbers[split] for split in splits)


def _default(configs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the configuration that is read by default; add it if it is missing."""
    marked = [config for config in configs if config.get("default")]
    named = [config for config in configs if config.get("config_name", "default") == "default"]
    for config in [*marked, *named]:
        return config
    configs.append({"config_name": "default"})
    return configs[-1]


def _entry(split: str) -> dict[str, Any]:
    """Return the entry of a split in the YAML of the card."""
    return {"split": split, "path": f"data/{split}-*.parquet"}


def _row(name: str, manifest: Manifest) -> str:
    made_from = manifest.made_from
    code = made_from.get("code") or made_from.get("source", "")
    digests = [digest[:_SHOWN] for digest in (made_from.get("options", ""), code)]
    dropped = 0 if manifest.new_records else manifest.dropped
    numbers = [manifest.rows_in, manifest.rows_out, dropped, manifest.failed]
    cells = [name, manifest.operator or "source", *(f"{number:,}" for number in numbers), *digests]
    return f"| {' | '.join(map(_plain, cells))} |"


def _options_of(nodes: Sequence[tuple[str, Manifest]]) -> Iterator[str]:
    """Yield the lines of the options of nodes; none if all are defaults."""
    rows = [
        (name, option, _shown_value(value))
        for name, manifest in nodes
        for option, value in manifest.options.items()
    ]
    if rows:
        yield from ("", "Options that are not the default:", "")
        yield from ("| step | option | value |", "|---|---|---|")
    for row in rows:
        yield f"| {' | '.join(map(_plain, row))} |"


def _shown_value(value: Any) -> str:
    """Return the text of an option. Of an absolute path only the last name is published."""
    if isinstance(value, str):
        is_path = _ABSOLUTE.match(value) is not None
        return (is_path and re.split(r"[\\/]", value.rstrip("\\/"))[-1]) or value
    if isinstance(value, list):
        return ", ".join(map(_shown_value, value))
    if isinstance(value, dict):
        return ", ".join(
            f"{_shown_value(key)}: {_shown_value(item)}" for key, item in value.items()
        )
    return orjson.dumps(value).decode()


def _checks_of(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the lines of the checks of results; none if no outcome is known."""
    rows = [(step.name, name, check) for step in steps for name, check in step.checks.items()]
    if rows:
        yield from ("", "Checks of the results:", "")
        yield from ("| step | check | severity | outcome |", "|---|---|---|---|")
    for step_name, name, check in rows:
        cells = (step_name, name, check.severity, "passed" if check.passed else "failed")
        yield f"| {' | '.join(map(_plain, cells))} |"


def _plain(text: str) -> str:
    """Return a text that changes nothing around it in Markdown."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def size_of(rows: int) -> str:
    """Return the category of the Hub for a number of records."""
    return _SIZES[min(max(len(str(rows)) - 3, 0), len(_SIZES) - 1)]


def steps_to(location: Location) -> list[Step]:
    """Return the steps that made a file, each after those that it was made from.

    More than a card lists are not looked up.

    Args:
        location: The file. If it is no result of a node, it is the only step.
    """
    steps: dict[str, Step] = {}
    _add(local_path(location) or location, "", steps)
    return list(steps.values())


def _add(location: Location, source: str, steps: dict[str, Step]) -> None:
    key = str(location)
    if key in steps or len(steps) > _MOST_STEPS:
        return
    manifest = _manifest_of(location)
    if manifest is None:
        steps[key] = Step(Path(key).name, None, source or "a file")
        return
    steps[key] = Step("", None)  # an input of itself ends here
    for entry in manifest.inputs:
        identity = str(entry.get("fingerprint") or f"{int(entry.get('size_bytes') or 0):,} bytes")
        _add(input_location(entry), identity, steps)
    name = node_of(Path(key).name)
    checks = outcomes_of(Path(key), manifest.fingerprint)
    steps[key] = steps.pop(key)._replace(name=name, manifest=manifest, checks=checks)


def _manifest_of(location: Location) -> Manifest | None:
    if not isinstance(location, Path) or not is_result(location.name):
        return None
    try:
        manifest = Manifest.load(manifest_of(location))
        if manifest is not None and manifest.part_of:
            manifest = Manifest.load(location.parent / manifest.part_of)
    except DataOpsError:  # of a later version, or damaged: listed as a file
        return None
    return manifest
