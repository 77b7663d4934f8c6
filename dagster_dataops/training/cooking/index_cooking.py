"""`IndexCooker`: make records of the lines of an index, in any process and any order."""

import threading
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import orjson

from dagster_dataops.errors import CookerError, IndexOutdatedError
from dagster_dataops.foundation.override import override
from dagster_dataops.records import RESTORE_KEY, compact_copy
from dagster_dataops.streams.files.locations import Location, compression_of
from dagster_dataops.training.cooking.blending import ENTRY
from dagster_dataops.training.cooking.cook_stage import BoundCooker, typed_cooker
from dagster_dataops.training.cooking.cookers import Cooker, chosen_cooker
from dagster_dataops.training.cooking.crude_sources import DECLARED, Row
from dagster_dataops.training.cooking.crude_tars import shard_version
from dagster_dataops.training.cooking.joined_samples import Joiner, joined_sample, no_primary
from dagster_dataops.training.decoding.sample_decoder import Decoder
from dagster_dataops.training.filestores.energon.declared_samples import DeclaredSamples
from dagster_dataops.training.filestores.energon.energon_layout import joined
from dagster_dataops.training.filestores.source_info import new_sample
from dagster_dataops.training.filestores.store import FileStore
from dagster_dataops.training.filestores.store_opening import file_store
from dagster_dataops.training.filestores.stores_of_samples import opened_stores
from dagster_dataops.training.filestores.tars.open_shards import OpenShards
from dagster_dataops.training.filestores.tars.shard_scan import BY_TARFILE, TarShard

_NEEDED: Final = ("key", "dataset", "shard", "index", "parts")


class IndexCooker:
    """Cooks the samples that lines of an index describe; for the arguments see `CrudeStream.cook`.

    It can be pickled, and used by several threads. Each process opens the files itself.
    """

    def __init__(
        self,
        cookers: tuple[Cooker, ...],
        cache_pool: Any = None,
        storage_options: Mapping[str, Any] | None = None,
        decoder: Decoder = "auto",
    ) -> None:
        self.cookers, self._decoder = cookers, decoder
        self._pool, self._options = cache_pool, dict(storage_options or {})
        self._shards = OpenShards()
        self._lock = threading.Lock()
        self._bound: dict[bytes, BoundCooker] = {}
        self._checked: dict[tuple[str, str, str], TarShard] = {}
        self._stores: dict[str, FileStore] = {}

    @override
    def __reduce__(self) -> Any:
        return IndexCooker, (self.cookers, self._pool, self._options, self._decoder)

    def __call__(self, row: Row) -> Any:
        """Return the record, or the list of records, of a line."""
        return self.bound(row)(self.sample(row))

    def bound(self, row: Row) -> BoundCooker:
        """Return the cooker of a line."""
        missing = next((name for name in _NEEDED if name not in row), None)
        if missing is not None:
            reason = (
                f"the record has no {missing!r}, so it is not a line of the index of a crude "
                "dataset; cook() takes the source crude(...), or an index that was written of one"
            )
            raise CookerError(reason)
        aux = row.get("aux") or {}
        label = orjson.dumps([row["dataset"], row.get("subflavors"), aux, row.get(DECLARED)])
        cooker = self._bound.get(label)
        if cooker is None:
            with self._lock:
                cooker = self._bound[compact_copy(label)] = self._bound_for(row, aux)
        return cooker

    def _bound_for(self, row: Row, aux: Mapping[str, str]) -> BoundCooker:
        place, decoder = str(row["dataset"]), self._decoder
        first = row["joined"][0] if "joined" in row else row
        if DECLARED in first:
            declared = None if "joined" in row else DeclaredSamples.of_plain(row[DECLARED])
            return BoundCooker(typed_cooker(declared, aux, decoder, place), {}, None, None)
        chosen = chosen_cooker(self.cookers, row.get("subflavors"), aux, place)
        stores = opened_stores(aux, place, self._options)
        primary = self._store(row) if chosen.needs.primary else None
        values = None if decoder == "auto" else decoder
        return BoundCooker(chosen, stores, primary, self._pool, values)

    def _store(self, row: Row) -> FileStore:
        place = str(row["dataset"])
        if "joined" in row:
            raise no_primary(place)
        if place not in self._stores:
            duplicates = row.get("duplicates", "error")
            options = self._options
            self._stores[place] = file_store(place, duplicates=duplicates, storage_options=options)
        return self._stores[place]

    def sample(self, row: Row) -> dict[str, Any]:
        """Return the sample that a line describes.

        Raises:
            IndexOutdatedError: The shard was changed after it was indexed.
            StreamSourceError: The shard cannot be read.
        """
        sample = self._read(row)
        if ENTRY in row:
            sample[RESTORE_KEY] = [*sample[RESTORE_KEY], row[ENTRY]]
        return sample

    def _read(self, row: Row) -> dict[str, Any]:
        if "joined" in row:
            return self._joined(row)
        parts, names = self._parts(row)
        subflavors = dict(row.get("subflavors") or {})
        place, shard = row["dataset"], row["shard"]
        return new_sample(place, shard, row["key"], row["index"], names, subflavors) | parts

    def _joined(self, row: Row) -> dict[str, Any]:
        samples = [None if place is None else self._part(place) for place in row["joined"]]
        module, name, names = row["joiner"]
        joiner = Joiner(module, name, None if names is None else tuple(names))
        return joined_sample(joiner, row["dataset"], row.get("subflavors") or {}, samples)

    def _part(self, row: Row) -> Any:
        """Return one of the samples to join."""
        sample = self.sample(row)
        return self.bound(row)(sample) if DECLARED in row else sample

    def _parts(self, row: Row) -> tuple[dict[str, bytes], list[str]]:
        places = row["parts"]
        if "at" not in row:
            store = self._store(row)
            return {part: store.get(name) for part, name in places.items()}, list(places.values())
        key, at = row["key"], row["at"]
        names = [f"{key}.{part}" for part in places]
        shard = self._shard(row)
        part = partial(self._shards.part, shard, at)
        if any(size == BY_TARFILE for _, size in places.values()):
            return {
                shape_name: part(name, places[shape_name])
                for shape_name, name in zip(places, names, strict=True)
            }, names
        end = max((offset + size for offset, size in places.values()), default=at)
        data = self._shards.read(shard, end - at, at)
        if len(data) < end - at:
            raise IndexOutdatedError(shard.location.path, f"it ends before byte {end:,}")
        contents = {
            form: data[offset - at : offset - at + size] for form, (offset, size) in places.items()
        }
        return contents, names

    def _shard(self, row: Row) -> TarShard:
        """Return the shard of a line. Its version is compared once in each process."""
        place = dataset, name, version = row["dataset"], row["shard"], row.get("version", "")
        known = self._checked.get(place)
        if known is None:
            path = joined(dataset, name)
            known = TarShard(name, Location(path, compression_of(path), self._options))
            if version and shard_version(known) != version:
                raise IndexOutdatedError(path, "its size or its content differs from the index")
            self._checked[place] = known
        return known
