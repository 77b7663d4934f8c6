"""new_files_sensor: a partition and a run for each new input file."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.inputs.path_pattern import matching
from dagster_dataops.assets.metadata.metadata_keys import PATH, SIZE_BYTES
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.format_numbers import read_number
from dagster_dataops.foundation.quantities import counted

_VERSION: Final = 1
_ALL_NEW: Final = "all files count as new, but for those whose run key Dagster knows"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFiles:
    """Options of the sensor that makes a partition of each new input file and launches its run.

    Attributes:
        settle_seconds: Seconds for which a file must be unchanged before it is processed. Other
            files wait for the next tick. Use 0 if files are put in place by renaming. Hidden files
            and files that do not match the pattern are never processed.
        runs_per_tick: Maximum number of files per tick, oldest first; the others follow at the next
            ticks.
        changed: Whether a file that has changed since its run is processed again.
        launch: Whether runs are launched. Otherwise partitions are added and the files are reported
            as materializations of the source, for an `automation_condition`.
        interval_seconds: Minimum number of seconds between two ticks.
        running: Whether the sensor is on by default.
    """

    settle_seconds: float = 10.0
    runs_per_tick: int = 20
    changed: bool = False
    launch: bool = True
    interval_seconds: int = 30
    running: bool = False

    def __post_init__(self) -> None:
        if self.settle_seconds < 0:
            raise ConfigurationError("settle_seconds", self.settle_seconds, "at least 0")
        if self.runs_per_tick < 1:
            raise ConfigurationError("runs_per_tick", self.runs_per_tick, "at least 1")


@dataclass(frozen=True, slots=True)
class _File:
    key: str
    path: Path
    size_bytes: int
    modified_ns: int

    @property
    def stamp(self) -> str:
        return f"{self.modified_ns:x}-{self.size_bytes:x}"


def new_files_sensor(
    pattern: str,
    *,
    partitions_def: dg.DynamicPartitionsDefinition,
    job: Any,
    source: dg.AssetKey | None = None,
    keys: Sequence[dg.AssetKey] = (),
    options: NewFiles | None = None,
) -> dg.SensorDefinition:
    """Return a sensor that adds a partition for each new file and launches a run for it.

    The cursor holds the processed files: after a restart, no file is lost and none is processed
    twice. Run keys hold file name, time and size, so that Dagster launches each run once. Partition
    keys are the file names; characters that a key cannot hold are written as ``%XX``.

    Args:
        pattern: A path with ``{partition}``, such as ``inbox/{partition}.jsonl``.
        partitions_def: Partitions that keys are added to; the sensor has the same name.
        job: Job to launch for each partition.
        source: External asset of the files; each file is reported as a materialization.
        keys: Assets of the job. A file that the sensor sees for the first time gets no run if all
            these assets already have its partition.
        options: How new files become partitions.
    """
    options = options or NewFiles()
    group = partitions_def.name
    if group is None:
        raise ConfigurationError(
            "partitions_def", partitions_def, "a DynamicPartitionsDefinition(name=)"
        )

    def look(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        files, changing = _unchanged(pattern, options.settle_seconds)
        known, problem = _known_files(context.cursor, pattern)
        if problem:
            context.log.warning("%s: %s", pattern, problem)
        gone = known.keys() - {file.key for file in files} - changing
        known = {key: stamp for key, stamp in known.items() if key not in gone}
        waiting = [
            file
            for file in files
            if file.key not in known or (options.changed and known[file.key] != file.stamp)
        ]
        there = set(context.instance.get_dynamic_partitions(group))
        have = _have_all(context.instance, keys, known, waiting) & there
        done = [file for file in waiting if file.key in have]
        due = [file for file in waiting if file.key not in have][: options.runs_per_tick]
        known |= {file.key: file.stamp for file in [*done, *due]}
        cursor = json.dumps({"version": _VERSION, "files": known}, separators=(",", ":"))
        if not due:
            context.update_cursor(cursor)
            return dg.SkipReason(_why_nothing(pattern, len(files), len(changing)))
        new = [file.key for file in due if file.key not in there]
        requests = [
            dg.RunRequest(run_key=f"{group}:{file.key}:{file.stamp}", partition_key=file.key)
            for file in due
        ]
        return dg.SensorResult(
            run_requests=requests if options.launch else [],
            dynamic_partitions_requests=[partitions_def.build_add_request(new)] if new else [],
            asset_events=[_event(source, file) for file in due] if source else [],
            cursor=cursor,
        )

    running = dg.DefaultSensorStatus.RUNNING if options.running else dg.DefaultSensorStatus.STOPPED
    return dg.SensorDefinition(
        name=f"{group}_new_files",
        evaluation_fn=look,
        job=job,
        minimum_interval_seconds=options.interval_seconds,
        description=f"Adds a partition for each new file {pattern}.",
        default_status=running,
    )


def _unchanged(pattern: str, settle_seconds: float) -> tuple[list[_File], set[str]]:
    """Return the files unchanged for long enough, oldest first, and the keys of the others."""
    unchanged: list[_File] = []
    changing: set[str] = set()
    for key, path in matching(pattern):
        try:
            status = path.stat()
        except OSError:  # renamed or deleted since it was listed
            continue
        if not S_ISREG(status.st_mode):
            continue
        # Use the change time: copying and unpacking can set any modification time.
        if settle_seconds and time.time() - status.st_ctime < settle_seconds:
            changing.add(key)
        else:
            unchanged.append(_File(key, path, status.st_size, status.st_mtime_ns))
    return sorted(unchanged, key=lambda file: (file.modified_ns, file.key)), changing


def _known_files(cursor: str | None, pattern: str) -> tuple[dict[str, str], str]:
    """Return the processed files of a cursor, and why there are none if it cannot be read."""
    if not cursor:
        return {}, ""
    try:
        content = json.loads(cursor)
        version = content["version"]
        known = read_number(version, _VERSION, f"the cursor of the sensor of {pattern}")
        files = content["files"]
    except (ValueError, TypeError, KeyError):
        return {}, f"the cursor is damaged, so {_ALL_NEW}; it was {cursor:.200}"
    if known is None or not isinstance(files, dict):
        problem = f"version {version!r}; this package reads version {_VERSION}"
        return {}, f"the cursor has {problem}, so {_ALL_NEW}; it was {cursor:.200}"
    return files, ""


def _have_all(
    instance: dg.DagsterInstance,
    assets: Sequence[dg.AssetKey],
    known: Mapping[str, str],
    waiting: Iterable[_File],
) -> set[str]:
    """Return the keys that are new to the sensor and whose partition every asset has already."""
    have = {file.key for file in waiting if file.key not in known}
    for asset in assets if have else ():
        have &= set(instance.get_materialized_partitions(asset))
    return have if assets else set()


def _why_nothing(pattern: str, unchanged: int, changing: int) -> str:
    if not unchanged and not changing:
        return f"there is no file {pattern}"
    if changing:
        return f"{counted(changing, 'files')} changed a moment ago; the next check decides"
    return f"nothing new among {counted(unchanged, 'files')}"


def _event(source: dg.AssetKey, file: _File) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        asset_key=source,
        partition=file.key,
        metadata={
            SIZE_BYTES: file.size_bytes,
            PATH: dg.MetadataValue.path(file.path),
        },
        tags={"dagster/data_version": f"stat:{file.stamp}"},
    )
