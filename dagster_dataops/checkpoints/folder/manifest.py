"""NodeFolder: the files of one operator node. Manifest: facts about its published result."""

import errno
import os
import time
import typing
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field, fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import orjson

from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.checkpoints.journal.journal_reader import (
    check_not_newer,
    is_read,
    noted_format,
    with_mark,
    without_mark,
)
from dagster_dataops.checkpoints.places.node_place import NodePlace
from dagster_dataops.checkpoints.places.placement import place_of, place_of_file, refresh_below
from dagster_dataops.configuration import folder_at
from dagster_dataops.datasets.artefact import (
    SUFFIX,
    Artefact,
    damage,
    is_version,
    is_version_name,
)
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import storage, write_durably
from dagster_dataops.datasets.published_files import (
    CHECKPOINTS,
    MANIFEST,
    OTHER_VERSIONS,
    RESULT,
    form_of,
    is_result,
    manifest_of,
    node_of,
    parts_of,
    result_name,
)
from dagster_dataops.datasets.writer import write_records
from dagster_dataops.errors import InputError, ResultMissingError
from dagster_dataops.foundation.frozen import frozen
from dagster_dataops.foundation.places.bucket import (
    BucketFile,
    CopiedFile,
    LocalFile,
    Location,
    StoreBucket,
    published_file,
)
from dagster_dataops.foundation.places.confined_names import is_plain
from dagster_dataops.foundation.places.opening import COMPRESSED, FORMS, PLAIN, state_at
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.foundation.quantities import counted

OutputFacts: TypeAlias = dict[str, Any]  # the keys of `_OUTPUT_CHECKS`


@frozen(eq=True, kw_only=False)
class NodeFolder:
    """The files of one operator node.

    Attributes:
        path: The folder, ``<root>/<...>/<name>``.
        name: The node's name. All file names begin with it.
        outputs: The folders of the results of a node with named outputs, by name; else empty. The
            node's own folder then has checkpoints, error file and manifest.
        bucket: The bucket that stores the files, if the folder is a working copy; else ``None``.
        form: The form of the result that is meant: of a run the one that it writes, of a manifest
            the one that it tells of. See `in_form` and `as_published`.
    """

    path: Path
    name: str
    outputs: Mapping[str, "NodeFolder"] = field(default_factory=dict, hash=False)
    bucket: StoreBucket | None = None
    form: str = PLAIN

    @classmethod
    def of(cls, folder: Root, name: str = "") -> "NodeFolder":
        """Return the folder of a node.

        Args:
            folder: The folder, such as ``root / "name"``.
            name: The name of the node; by default that of the folder.
        """
        return cls(folder.path, name or folder.path.name, bucket=folder.bucket)

    @classmethod
    def at(cls, path: str | os.PathLike[str] | Root) -> "NodeFolder":
        """Return the folder at ``path``, or the folder of the result at ``path``.

        Raises:
            ResultMissingError: The folder contains no result.
            ConfigurationError: The path is a URL.
        """
        root = path if isinstance(path, Root) else folder_at(path)
        refresh_below(root)
        target = root.path
        results = [target] if is_result(target.name) else _results_in(target)
        if not results:
            reason = (
                f"no *{RESULT} is there; for a partitioned node, give a partition's folder, for a "
                "node with several results the folder of one of them"
            )
            raise ResultMissingError(str(root.located(target)), reason)
        folder = Root(results[0].parent, root.bucket)
        place = cls.of(folder, node_of(results[0].name)).in_form(form_of(results[0].name))
        return place.as_published() if len(results) > 1 else place

    @classmethod
    def of_result(cls, dataset: JsonlDataset) -> "NodeFolder":
        """Return the folder of a result.

        Raises:
            ResultMissingError: It is gone.
        """
        location = dataset.location
        if isinstance(location, BucketFile) and (copy := location.published) is not None:
            root = Root(copy.path.parent, location.bucket)
            return cls.of(root, node_of(copy.name)).in_form(form_of(copy.name))
        return cls.at(Root(dataset.path, None if isinstance(location, Path) else location.bucket))

    def with_outputs(self, names: Iterable[str]) -> "NodeFolder":
        """Return the folder with a folder in it for each named output, unless it has them."""
        if tuple(self.outputs) == tuple(names):
            return self
        outputs = {name: NodeFolder.of(self.root / name).in_form(self.form) for name in names}
        return replace(self, outputs=outputs)

    def in_form(self, form: str) -> "NodeFolder":
        """Return the folder with the result, and those of its outputs, in a form."""
        if form == self.form:
            return self
        outputs = {name: place.in_form(form) for name, place in self.outputs.items()}
        return replace(self, outputs=outputs, form=form)

    def as_published(self) -> "NodeFolder":
        """Return the folder with the result in the form in which it was published."""
        manifest = Manifest.of(self)
        return self if manifest is None else self.in_form(manifest.form)

    def located(self, path: Path) -> LocalFile:
        """Return the location of a file or folder of the node; its text is for messages."""
        return self.root.located(path)

    @property
    def root(self) -> Root:
        """The folder and its bucket."""
        return Root(self.path, self.bucket)

    @property
    def place(self) -> NodePlace:
        """Where the files are: in this folder, or in the bucket of which it is a working copy."""
        return place_of(self.root, self.name)

    @cached_property
    def result(self) -> Path:
        """The published result."""
        return self.path / result_name(self.name, self.form)

    @property
    def other_forms(self) -> list[Path]:
        """The files of results of other forms, which a publication removes."""
        return [self.in_form(form).result for form in FORMS if form != self.form]

    @cached_property
    def manifest(self) -> Path:
        """The manifest of the published result: counts, fingerprints, the run."""
        return self.path / f"{self.name}{MANIFEST}"

    @property
    def artefact(self) -> Path:
        """The folder of the versions of an artefact; other operators have none."""
        return self.path / f"{self.name}{SUFFIX}"

    @property
    def parts(self) -> Path:
        """The folder of the parts of a result that an earlier version wrote in parts."""
        return parts_of(self.result)

    @property
    def receipt(self) -> Path:
        """The receipt of the export of the result; only exported results have one."""
        return self.path / f".{self.name}_export.json"

    @cached_property
    def errors(self) -> Path:
        """The error file; it exists only if records failed."""
        return self.path / f"{self.name}_error.jsonl"

    @cached_property
    def kept(self) -> Path:
        """The map from input records to result bytes, for retries of failed records and traces.

        It exists only if a record has not become exactly one line of the result, or if outcomes
        are reused for other inputs.
        """
        return self.path / f".{self.name}_results.kept"

    @cached_property
    def input_digests(self) -> Path:
        """The digests of the input records, to compare versions of the result.

        Only nodes that keep versions have it.
        """
        return self.path / f".{self.name}_results.inputs"

    @cached_property
    def input(self) -> Path:
        """The concatenation of several inputs during a run; removed afterwards."""
        return self.checkpoints / "input.jsonl"

    @cached_property
    def checkpoints(self) -> Path:
        """Checkpoints of unfinished runs."""
        return self.path / CHECKPOINTS

    @property
    def other_versions(self) -> Path:
        """What other versions of this package have written, and this one does not read."""
        return self.path / OTHER_VERSIONS


@frozen(eq=True)
class Manifest:
    """Facts about a published result, in a JSON file beside it.

    Fields that are not known are ignored, and new fields have a default: manifests of all versions
    from 0.2.0 on are read, and a version reads those of later ones with the same format.

    Attributes:
        done: Always true: a manifest is written when a result is published.
        operator: Qualified name of the operator.
        rows_in: Input records.
        rows_out: Result records.
        dropped: Input records that emitted nothing and did not fail.
        failed: Input records that failed; they are in the error file.
        resumed: Input records that earlier attempts had settled.
        size_bytes: Size of the result.
        modified_ns: Modification time of the result.
        fingerprint: Digest of the result's bytes.
        run: The run that published the result. If that run died before it reported the result,
            the run that adopted the result.
        attempts: The runs that worked on it, in order.
        seconds: Duration of the last attempt.
        made_from: Fingerprint of operator, options, code and input; for a source function the
            digest of its code, as ``source``.
        kept_from: Runs whose records were kept on request although options or code have changed.
            Each entry has ``run``, ``options`` and ``code``. Almost always empty.
        resumed_from: The runs that had settled the ``resumed`` records, in order.
        seeds: Random seeds that the stages of a stream have generated, by stage path.
        outcomes: Whether the outcome of each record can be reused for other inputs.
        outputs: Of a node with named outputs the facts about each result, by name; ``rows_out`` and
            ``size_bytes`` are then those of all together.
        part_of: Of the result of a named output the path of the manifest of its node, relative to
            the folder of the result. The other numbers are those of the node.
        mapped: Whether there is a map from input records to result lines, `NodeFolder.kept`.
        inputs: Path, fingerprint and rows of each input, in order; of an input without a
            fingerprint also ``size_bytes`` and ``modified_ns``, of an object its ``url``, of a
            result in a bucket its URL ``copy_of``, of a file that was written elsewhere also
            ``state``, its `FileState`. Records of several inputs of a record operator or selection
            follow one another. The path of a result in the bucket of the node is that of its copy
            on this machine.
        counts: The operator's counts, summed over every try of every record.
        drops: Number of dropped records by reason, the most frequent first.
        drop_examples: The first dropped records of each reason; each with ``line``, counted from 1,
            and ``input``, the text of the line, cut.
        funnel: Of a chain: for each part its name, the records that it was called with, how many
            it passed on, dropped and failed, and its seconds.
        artefact: Of an artefact the name of its version, which is its digest; the result is the
            listing of its files.
        parted: Of a result that an earlier version wrote in parts the name of the folder with them,
            which is the digest of their listing; else empty. Size and digest of the result are
            those of the parts joined.
        kind: The kind of the operator, such as ``record``; empty for a source function.
        new_records: Whether the result is made of new records; then none counts as dropped.
        traced: Whether the map was to be written. There is none if every record became one line.
        combined: Of a stream that only combines its inputs by position: how, as
            `item_origins.describe` returns it; empty otherwise.
        leaves: Of a stream that mixes datasets: for each its ``name``, ``path`` and ``cooker``, the
            share of the samples that is wanted as ``wanted``, ``None`` if no share is, and the
            number of ``samples`` that were read.
        options: The options of the operator whose value is not the default, by name, for display:
            without secrets, cut. A source function has none.
        defaults: The default of each of these options that has one, for display.
        identity_parts: Digests of the parts of ``made_from``, to name what differs between two
            results: under ``options`` those of the options by name, under ``code`` those of
            functions, classes, constants, modules and packages. Hidden values have one that is
            expensive to guess from. Earlier versions wrote none.
        compressed_bytes: Of a compressed result the size of its file; else 0. Size and digest of
            the result are those of its text in any case.
    """

    done: bool = True
    operator: str
    rows_in: int
    rows_out: int
    dropped: int
    failed: int
    resumed: int
    size_bytes: int
    modified_ns: int
    fingerprint: str
    run: str
    attempts: list[str]
    seconds: float
    made_from: dict[str, str]
    kept_from: list[dict[str, str]] = field(default_factory=list)
    resumed_from: list[str] = field(default_factory=list)
    seeds: dict[str, int] = field(default_factory=dict)
    outcomes: bool = False
    outputs: dict[str, OutputFacts] = field(default_factory=dict)
    part_of: str = ""
    mapped: bool = False
    inputs: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)
    drops: dict[str, int] = field(default_factory=dict)
    drop_examples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    funnel: list[dict[str, Any]] = field(default_factory=list)
    artefact: str = ""
    parted: str = ""
    kind: str = ""
    new_records: bool = False
    traced: bool = False
    combined: dict[str, Any] = field(default_factory=dict)
    leaves: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    identity_parts: dict[str, dict[str, str]] = field(default_factory=dict)
    compressed_bytes: int = 0

    @property
    def form(self) -> str:
        """The form of the result, one of `FORMS`; that of all outputs."""
        sizes = [facts.get("compressed_bytes", 0) for facts in self.outputs.values()]
        return COMPRESSED if self.compressed_bytes or any(sizes) else PLAIN

    @property
    def file_bytes(self) -> int:
        """The size of the file of the result."""
        return self.compressed_bytes or self.size_bytes

    @property
    def made_text(self) -> str:
        """How many new records were made from how many, such as ``2 records from 10``."""
        return f"{counted(self.rows_out, 'records')} from {self.rows_in:,}"

    def to_bytes(self) -> bytes:
        """Return the manifest as readable JSON.

        The format of one with compressed results is newer for versions that cannot read them.
        """
        noted = self
        if self.form != PLAIN:
            noted = replace(self, made_from=with_mark(self.made_from, COMPRESSED))
        return orjson.dumps(noted, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    @classmethod
    def of(cls, folder: NodeFolder) -> "Manifest | None":
        """Return the manifest of a node, see `load`."""
        return cls.load(folder.located(folder.manifest))

    @classmethod
    def load(cls, path: LocalFile) -> "Manifest | None":
        """Return the manifest at ``path``; ``None`` if it is missing or malformed.

        Raises:
            NewerVersionError: It has the format of a newer version.
            StorageError: It is there, but cannot be read.
        """
        data = _content_of(path)
        return None if data is None else cls.parse(data, path)

    @classmethod
    def parse(cls, data: bytes, path: LocalFile) -> "Manifest | None":
        """Return the manifest in ``data``; ``None`` if it is malformed.

        Args:
            data: The content of its file.
            path: Of the file, for errors.

        Raises:
            NewerVersionError: It has the format of a newer version.
        """
        try:
            content = without_mark(orjson.loads(data), COMPRESSED)
            check_not_newer(_format_in(content), path)
            known = {name: value for name, value in content.items() if name in _CHECKS}
            loaded = cls(**{**known, "outputs": _outputs_in(content)})
        except (TypeError, AttributeError, orjson.JSONDecodeError):
            return None
        if not all(fits(getattr(loaded, name)) for name, fits in _CHECKS.items()):
            return None
        if not (_are_versions(loaded.artefact, loaded.parted) and _is_above(loaded.part_of)):
            return None
        if not all(map(_is_output, loaded.outputs.values())):
            return None
        loaded.inputs[:] = [_with_local_path(facts, path) for facts in loaded.inputs]
        return loaded

    def parts(self, folder: NodeFolder) -> dict[str, "tuple[NodeFolder, Manifest]"]:
        """Return folder and manifest of each result, by the name of its output.

        Args:
            folder: Of the node that this manifest is of.

        Returns:
            The named outputs; the folder and this manifest, under the empty name, if the node has
            one result.
        """
        if not self.outputs:
            return {"": (folder.in_form(self.form), self)}
        parts = {}
        for name, facts in self.outputs.items():
            path = Path(os.path.normpath(folder.path / facts["folder"]))
            place = NodeFolder.of(folder.root.at(path), facts["name"]).in_form(self.form)
            common = {key: facts[key] for key in _OWN_FACTS}
            part_of = os.path.relpath(folder.manifest, place.path)
            parts[name] = (
                place,
                replace(self, outputs={}, part_of=part_of, mapped=False, outcomes=False, **common),
            )
        return parts

    def error_file(self, folder: NodeFolder) -> Path | None:
        """Return the file with the failed records; ``None`` if there are none.

        Args:
            folder: The folder of the result that this manifest is of.
        """
        path = folder.errors
        if self.part_of:
            node = Path(os.path.normpath(folder.path / self.part_of))
            path = NodeFolder(node.parent, node.name.removesuffix(MANIFEST)).errors
        return path if self.failed and path.exists() else None

    def dataset(self, folder: NodeFolder) -> JsonlDataset:
        """Return the handle of the result in a folder.

        The manifest is put in place last. A file that was changed later may be another file with
        its modification time set back. The handle of such a changed file has no state, so that its
        digest is checked before it is used.
        """
        folder = folder.in_form(self.form)
        path = folder.result.absolute()
        location = folder.located(path)
        dataset = JsonlDataset(location, self.size_bytes, self.rows_out, self.fingerprint)
        try:
            state = state_at(path)
            published_ns = manifest_of(path).stat().st_ctime_ns
        except OSError:  # a missing file is reported when it is read
            return self._in_place(folder) or dataset
        return replace(dataset, state=state) if state.changed_ns <= published_ns else dataset

    def _in_place(self, folder: NodeFolder) -> JsonlDataset | None:
        """Return the handle of a result of which this machine has no copy."""
        file = folder.place.find(folder.result.absolute())
        if file is None:
            return None
        state = state_at(file.location)
        return JsonlDataset(file.location, self.size_bytes, self.rows_out, self.fingerprint, state)

    def tells_of(self, result: Path) -> bool:
        """Return whether ``result`` is the published file: neither replaced nor edited since."""
        try:
            state = state_at(result)
        except OSError:
            return False
        return (state.size, state.modified_ns) == (self.file_bytes, self.modified_ns)

    def made_by(self, fingerprint: RunFingerprint) -> bool:
        """Return whether the whole result was made by this operator, options, code and input."""
        return self.finished_by(fingerprint) and not fingerprint.differs_from(self.kept_from)

    def finished_by(self, fingerprint: RunFingerprint) -> bool:
        """Return whether such a run published the result, perhaps with kept records."""
        made_from = RunFingerprint.from_json(self.made_from)
        return made_from is not None and not made_from.differences(fingerprint)


def _content_of(path: LocalFile) -> bytes | None:
    """Return the content of a manifest; ``None`` if there is no such file.

    One that this user may not read, or that the disk refuses, is not missing: a run would make its
    result again, and replace it.
    """
    with storage(path, "read the manifest"):
        try:
            return Path(path).read_bytes()
        except OSError as error:
            if error.errno in _NO_FILE:
                return None
            raise


def _results_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*_results.*") if is_result(path.name))


def _check_of(kind: Any) -> Callable[[object], bool]:
    """Return a function that checks the type of a value, and of the values in it.

    It is made once for each field, since `typing.get_origin` and `get_args` are slow.
    """
    if kind is Any:
        return lambda _: True
    if kind is float:
        return lambda value: type(value) in {float, int}
    plain = typing.get_origin(kind) or kind
    if plain not in {dict, list}:
        return lambda value: type(value) is plain
    inner = _check_of(typing.get_args(kind)[-1])  # keys of a dict are texts, as JSON has them
    if plain is list:
        return lambda value: type(value) is list and all(map(inner, value))
    return lambda value: type(value) is dict and all(map(inner, value.values()))


_NO_FILE: Final = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP}
_CHECKS: Final = {entry.name: _check_of(entry.type) for entry in fields(Manifest)}
_OWN_FACTS: Final = (
    *("rows_out", "size_bytes", "modified_ns", "fingerprint", "parted"),
    "compressed_bytes",
)
_OUTPUT_CHECKS: Final = {
    **dict.fromkeys(("folder", "name"), _check_of(str)),
    **{fact: _CHECKS[fact] for fact in _OWN_FACTS},
}
_LATER_FACTS: Final = {"parted": "", "compressed_bytes": 0}  # which version 0.2.0 did not write


def _format_in(content: Mapping[str, Any]) -> str:
    """Return the format that a manifest notes in its fingerprint; that of a source has none."""
    return noted_format(content.get("made_from"))


def _outputs_in(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known facts about the outputs in a manifest."""
    return {
        name: {
            fact: value for fact, value in (_LATER_FACTS | facts).items() if fact in _OUTPUT_CHECKS
        }
        for name, facts in content.get("outputs", {}).items()
    }


def unreadable(path: LocalFile) -> str | None:
    """Return the format of a manifest that this version does not read; ``None`` if it reads it.

    Args:
        path: Of the manifest; a missing one counts as read.

    Returns:
        The format that it notes; empty if it is malformed.

    Raises:
        NewerVersionError: It has the format of a newer version.
        StorageError: It is there, but cannot be read.
    """
    data = _content_of(path)
    if data is None:
        return None
    try:
        written_format = _format_in(without_mark(orjson.loads(data), COMPRESSED))
    except (AttributeError, orjson.JSONDecodeError):
        return ""
    check_not_newer(written_format, path)
    if written_format and not is_read(written_format):  # empty for that of a source
        return written_format
    return "" if Manifest.parse(data, path) is None else None


def _with_local_path(facts: dict[str, Any], manifest: LocalFile) -> dict[str, Any]:
    """Return the facts about an input; a result in the bucket of the node has its path here.

    Args:
        facts: The facts, which another machine may have written.
        manifest: Of the node.
    """
    bucket = manifest.bucket if isinstance(manifest, CopiedFile) else None
    url = str(facts.get("copy_of", ""))
    if bucket is None or not url.startswith(f"{bucket.url}/"):
        return facts
    key = url.removeprefix(f"{bucket.url}/")
    is_below = all(map(is_plain, key.split("/")))
    return {**facts, "path": str(bucket.folder / key)} if is_below else facts


def _is_output(facts: object) -> bool:
    if not isinstance(facts, dict) or set(facts) != set(_OUTPUT_CHECKS):
        return False
    if not all(fits(facts[name]) for name, fits in _OUTPUT_CHECKS.items()):
        return False
    is_here = is_plain(facts["name"]) and not os.path.isabs(facts["folder"])  # noqa: PTH117 - a text
    return is_here and _are_versions(facts["parted"])


def _are_versions(*names: str) -> bool:
    """Return whether names are those of versions, or empty: they become paths."""
    return all(is_version_name(name) for name in names if name)


def _is_above(part_of: str) -> bool:
    """Return whether a text is empty, or the relative path of a manifest."""
    if not part_of:
        return True
    name = part_of.rpartition("/")[2]
    return not part_of.startswith("/") and is_plain(name) and name.endswith(MANIFEST)


def output_place(folder: NodeFolder, output: NodeFolder) -> OutputFacts:
    """Return the first facts of a named output: its folder, from that of the node, and its name."""
    return {"folder": os.path.relpath(output.path, folder.path), "name": output.name}


def published_manifest(folder: NodeFolder) -> Manifest | None:
    """Return the manifest of a node; ``None`` if a result is missing, edited or at another place.

    Args:
        folder: Of the node, with the folders of its outputs if it has several.
    """
    manifest = Manifest.of(folder)
    if manifest is None:
        return None
    places = [(name, output_place(folder, place)) for name, place in folder.outputs.items()]
    outputs = [
        (name, {"folder": facts["folder"], "name": facts["name"]})
        for name, facts in manifest.outputs.items()
    ]
    if outputs != places:
        return None
    for place, part in manifest.parts(folder).values():
        if manifest.outputs and unreadable(place.located(place.manifest)) is not None:
            return None
        if not is_intact(place, part):
            return None
    return manifest


def is_intact(folder: NodeFolder, manifest: Manifest) -> bool:
    """Return whether a result, its parts and the files of an artefact are unchanged."""
    from dagster_dataops.datasets.parted_result import is_intact as has_intact_parts  # of before

    folder = folder.in_form(manifest.form)
    published = folder.place.find(folder.result)
    facts = None if published is None else (published.size, published.modified_ns)
    if facts != (manifest.file_bytes, manifest.modified_ns):
        return False
    if published and isinstance(published.location, BucketFile):  # one file, which nobody can edit
        return True
    if not has_intact_parts(folder.result, manifest.parted):
        return False
    return not (manifest.artefact and damage(folder.artefact / manifest.artefact))


def published(folder: NodeFolder, *, whole: bool = True) -> tuple[JsonlDataset, Manifest] | None:
    """Return a node's published result and manifest; ``None`` if it has no intact result.

    Args:
        folder: Of the node.
        whole: Whether this machine must have a copy of a large result in a bucket.
    """
    folder.place.refresh(whole=whole)
    return published_here(folder)


def published_here(folder: NodeFolder) -> tuple[JsonlDataset, Manifest] | None:
    """Return a node's local result and manifest; a working copy is not refreshed first."""
    manifest = Manifest.of(folder)
    if manifest is None or not is_intact(folder, manifest):
        return None
    return manifest.dataset(folder), manifest


def is_published(folder: NodeFolder) -> bool:
    """Return whether a node has a result, perhaps an edited one."""
    return folder.place.is_published()


def published_uri(location: Location) -> str:
    """Return the URI of a published result or an input; that of an object is in its store."""
    file = published_file(location)
    return str(location) if file is None else place_of_file(file).uri(Path(file))


def load_result(folder: NodeFolder | Root | str | os.PathLike[str]) -> JsonlDataset:
    """Return a node's published result. If the result was edited, its number of rows is unknown.

    Args:
        folder: The node's folder, or the folder of one of its partitions, or the path of the
            result; or the URL of one of these.

    Raises:
        ResultMissingError: Nothing was published.
    """
    if not isinstance(folder, NodeFolder):
        folder = NodeFolder.at(folder)
    result = published(folder)
    if result:
        return result[0]
    folder = folder.as_published()
    if not folder.result.exists():
        place = folder.located(folder.result)
        raise ResultMissingError(str(place), "nothing was published there yet")
    return JsonlDataset.at(folder.located(folder.result.absolute()))


def result_by_range(folder: NodeFolder) -> JsonlDataset:
    """Return a node's published result, as `load_result`.

    If only an object store has it, it is read there, by ranges, and not fetched. That holds for one
    file of records, not for one in parts or of named outputs.

    Raises:
        ResultMissingError: Nothing was published.
    """
    with suppress(InputError):  # it was replaced in the meantime
        if (dataset := _remote_result(folder)) is not None:
            return dataset
    return load_result(folder)


def _remote_result(folder: NodeFolder) -> JsonlDataset | None:
    """Return a result to be read in its store; ``None`` if this machine has, or needs, a copy."""
    remote = folder.place.remote()
    place = folder.located(folder.manifest)
    manifest = None if remote is None else Manifest.parse(remote.manifest, place)
    if remote is None or manifest is None or manifest.parted or manifest.artefact:
        return None
    file = remote.files.get(folder.in_form(manifest.form).result.name)
    if file is None:  # of named outputs
        return None
    state = state_at(file.location)
    facts = manifest.size_bytes, manifest.rows_out, manifest.fingerprint
    return JsonlDataset(file.location, *facts, state)


def load_artefact(folder: NodeFolder | Root | str | os.PathLike[str]) -> Artefact:
    """Return the current version of an artefact.

    Args:
        folder: The folder of its node, as a path or a URL, or the folder of a version.

    Raises:
        ConfigurationError: The URL is not that of an object store.
        ResultMissingError: Nothing was published, the result is no artefact, or its files were
            changed after it was published.
    """
    if not isinstance(folder, NodeFolder):
        root = folder if isinstance(folder, Root) else folder_at(folder)
        if is_version(root.path):
            return Artefact.at(root.path)
        folder = NodeFolder.at(root)
    version = _current_version(folder)
    while True:
        try:
            return Artefact.at(version)
        except ResultMissingError:
            latest = _current_version(folder)
            if latest == version:
                raise
            version = latest  # others were published in the meantime


def _current_version(folder: NodeFolder) -> Path:
    folder.place.refresh()
    manifest = Manifest.of(folder)
    if manifest is None:
        raise ResultMissingError(
            str(folder.located(folder.artefact)), "nothing was published there yet"
        )
    if not manifest.artefact:
        raise ResultMissingError(
            str(folder.located(folder.result)), "it holds records and is no artefact"
        )
    return (folder.artefact / manifest.artefact).absolute()


def write_result(
    folder: NodeFolder,
    records: Iterable[object],
    run: str,
    made_from: Mapping[str, str] = MappingProxyType({}),
) -> JsonlDataset:
    """Publish records that no operator produced, such as those of a source.

    Args:
        folder: The folder to publish in.
        records: Dicts.
        run: The run that publishes.
        made_from: As for `Manifest.made_from`.

    Raises:
        InputError: An element is not a record.
    """
    began = time.monotonic()
    dataset = write_records(folder.result, records, str(folder.path))
    rows, status = dataset.rows or 0, dataset.path.stat()
    manifest = Manifest(
        operator="",
        rows_in=rows,
        rows_out=rows,
        dropped=0,
        failed=0,
        resumed=0,
        size_bytes=dataset.size_bytes,
        modified_ns=status.st_mtime_ns,
        fingerprint=dataset.fingerprint or "",
        compressed_bytes=status.st_size if folder.form == COMPRESSED else 0,
        run=run,
        attempts=[run],
        seconds=round(time.monotonic() - began, 3),
        made_from=dict(made_from),
    )
    write_durably(folder.manifest, manifest.to_bytes())
    from dagster_dataops.datasets.parted_result import remove_parts

    with storage(folder.path, "remove files of an earlier result"):
        remove_parts(folder.parts)
        for path in folder.other_forms:
            path.unlink(missing_ok=True)
    folder.place.publish({folder.result: folder.result}, manifest.to_bytes())
    return replace(dataset, location=folder.located(dataset.path))
