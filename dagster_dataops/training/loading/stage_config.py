"""``stage_config``: the stages of a stream with their options, as JSON."""

import inspect
import math
import os
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeAlias

from dagster_dataops.operators.secrets.secret_options import redacted
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.training.cooking.crude_sources import CrudeSource

Config: TypeAlias = dict[str, Any]


def stage_config(stage: Stage) -> Config:
    """Return the name of a stage (``type``), its options, and those of the stages below it.

    One stage below is the ``source``, several are the ``sources``. Stages that change no item are
    left out. Functions are named, secrets are hidden, and other objects are shown by their class.

    Args:
        stage: The last stage.
    """
    sources = [stage_config(part) for part in stage.inputs]
    if stage.transparent:
        return sources[0]
    config: Config = {"type": stage.name}
    if isinstance(stage, CrudeSource):
        config |= _dataset(stage)
    config |= {name: _shown(redacted(name, value)) for name, value in stage.options().items()}
    if sources:
        config |= {"source": sources[0]} if len(sources) == 1 else {"sources": sources}
    return config


def _dataset(source: CrudeSource) -> Config:
    if len(source.parts) > 1:  # they are joined
        return {"datasets": [stage_config(part) for part in source.parts]}
    dataset = {"dataset": redacted("dataset", source.place)}
    return {**dataset, "shards": list(source.shard_names)} if source.shard_names else dataset


def _shown(value: object) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (list, tuple)):
        return [_shown(part) for part in value]
    if isinstance(value, Mapping):
        return {str(name): _shown(part) for name, part in value.items()}
    return _named(value)


def _named(value: object) -> str:
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, partial):
        return f"partial of {_named(value.func)}"
    named = value if inspect.isroutine(value) or isinstance(value, type) else type(value)
    text = f"{named.__module__}.{named.__qualname__}"
    return text if named is value else f"{text} object"
