"""``.cook()``: the stage that makes records of crude samples."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import orjson

from dagster_dataops.errors import CookerError
from dagster_dataops.foundation.override import override
from dagster_dataops.records import compact_copy
from dagster_dataops.streams.core.stage import Stage, State, UnaryStage
from dagster_dataops.training.cooking.cookers import (
    CACHE,
    PRIMARY,
    Cooker,
    SkipSample,
    chosen_cooker,
)
from dagster_dataops.training.cooking.crude_sources import CrudeSource
from dagster_dataops.training.cooking.typed_samples import TypedSamples
from dagster_dataops.training.decoding.decode_store import DecodeFileStore
from dagster_dataops.training.decoding.sample_decoder import Decoder, FileDecoder, decoded_parts
from dagster_dataops.training.filestores.cache_pool import NoCachePool
from dagster_dataops.training.filestores.energon.declared_samples import DeclaredSamples
from dagster_dataops.training.filestores.store import FileStore
from dagster_dataops.training.filestores.stores_of_samples import PrimaryStore, opened_stores


class BoundCooker:
    """A cooker with the stores that it gets.

    Args:
        cooker: The cooker.
        stores: The auxiliary stores by name.
        primary: The dataset of the samples; ``None`` for a cooker that needs none.
        cache: The cache pool; ``None`` for none.
        decoder: Makes values of the parts; ``None`` for bytes.
    """

    def __init__(
        self,
        cooker: Cooker,
        stores: Mapping[str, FileStore],
        primary: FileStore | None,
        cache: Any,
        decoder: FileDecoder | None = None,
    ) -> None:
        self.cooker = cooker
        self._cook, self._primary, self._decoder = cooker.cook, primary, decoder
        if decoder is not None:
            stores = {
                name: DecodeFileStore(store, decoder=decoder) for name, store in stores.items()
            }
        self._arguments: dict[str, Any] = dict(stores)
        if cooker.needs.cache:
            self._arguments[CACHE] = NoCachePool() if cache is None else cache

    def __call__(self, sample: dict[str, Any]) -> Any:
        """Return the output of the cooker for a sample: a record, or a list of records."""
        stores = self._arguments
        if self._primary is not None:
            stores = {**stores, PRIMARY: self._primary_of(sample)}
        if self._decoder is not None:
            sample = decoded_parts(sample, self._decoder)
        try:
            samples = self._cook(sample, **stores) if stores else self._cook(sample)
        except SkipSample:
            return []
        if isinstance(samples, dict):
            return samples
        return self._checked(samples, sample)

    def _primary_of(self, sample: dict[str, Any]) -> FileStore:
        primary = PrimaryStore(cast("FileStore", self._primary), sample)
        return primary if self._decoder is None else DecodeFileStore(primary, decoder=self._decoder)

    def _checked(self, cooked: object, sample: dict[str, Any]) -> list[dict[str, Any]]:
        if isinstance(cooked, list) and all(isinstance(sample, dict) for sample in cooked):
            return cooked
        kind = type(cooked).__name__
        msg = (
            f"cooker {self.cooker.name} returned a {kind} for sample {sample.get('__key__')!r}; "
            "return a record (a dict or a Sample), or a list of records"
        )
        raise TypeError(msg)


def bound_cooker(
    cookers: tuple[Cooker, ...], source: CrudeSource, cache: Any, decoder: Decoder = "auto"
) -> BoundCooker:
    """Return the cooker for a source, with its stores.

    Raises:
        CookerError: No cooker fits, its parameters do not, or a store cannot be opened.
    """
    labels = source.labels
    if source.is_typed:
        return BoundCooker(
            typed_cooker(labels.declared, labels.aux, decoder, source.place), {}, None, None
        )
    chosen = chosen_cooker(cookers, labels.subflavors, labels.aux, source.place)
    stores = opened_stores(labels.aux, source.place)
    primary = source.store() if chosen.needs.primary else None
    return BoundCooker(chosen, stores, primary, cache, None if decoder == "auto" else decoder)


def typed_cooker(
    declared: DeclaredSamples | None, aux: Mapping[str, Any], decoder: Decoder, place: str
) -> Cooker:
    """Return the cooker of a dataset that declares its type of samples, and has no other stores.

    Without ``declared``, a joiner has made the samples.
    """
    if aux:
        reason = (
            f"{place}: it declares its sample_type, so no cooker takes the auxiliary store "
            f"{next(iter(aux))!r}; set __class__: CrudeWebdataset, and write a cooker"
        )
        raise CookerError(reason)
    return Cooker(as_it_is if declared is None else TypedSamples(declared, decoder, place))


def as_it_is(sample: dict[str, Any]) -> dict[str, Any]:
    """Return a sample that a joiner has made."""
    return sample


def crude_sources(stage: Stage) -> list[CrudeSource]:
    """Return the crude sources of a stream that no stage has cooked yet."""
    if isinstance(stage, CrudeSource):
        return [stage]
    if isinstance(stage, Cook):
        return []
    return [source for source_stage in stage.inputs for source in crude_sources(source_stage)]


@dataclass(eq=False)
class Cook(UnaryStage):
    """Make records of crude samples; each sample is cooked alone.

    The position is that of the input before the current sample, and the number of records that were
    yielded of it.

    Attributes:
        cookers: The cookers, in order.
        cache_pool: The cache pool for cookers that need one.
        decoder: Makes values of the parts; see `CrudeStream.cook`.
        bound: The cookers of the sources. A copy of the stage upon something that has no sources,
            such as the samples that a worker process gets, keeps them.
    """

    name: ClassVar[str] = "cook"
    saved: ClassVar[tuple[str, ...]] = ("failed", "_yielded")
    elementwise: ClassVar[bool] = True  # each item depends on one sample alone
    elastic: ClassVar[bool] = True
    expands: ClassVar[bool] = True
    cookers: tuple[Cooker, ...]
    cache_pool: Any = None
    decoder: Decoder = "auto"
    bound: Mapping[bytes, BoundCooker] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Choose the cooker of each source."""
        sources = crude_sources(self.upstream)
        if not sources:
            if self.bound:
                return
            reason = "cook() needs a crude source, such as crude(...) or read_tar(...), before it"
            raise CookerError(reason)
        self.bound = {
            _label(source.place, source.labels.subflavors): bound_cooker(
                self.cookers, source, self.cache_pool, self.decoder
            )
            for source in sources
        }

    @override
    def options(self) -> dict[str, Any]:
        options = {
            "cookers": tuple(cooker.cook for cooker in self.cookers),
            "subflavors": [dict(cooker.has_subflavors or {}) for cooker in self.cookers],
        }
        called = [bound.cooker.cook for bound in self.bound.values()]
        code = [
            function
            for cooking in called
            if isinstance(cooking, TypedSamples)
            for function in cooking.code
        ]
        named = {"decoder": self.decoder} if self.decoder != "auto" else {}
        return {**options, **named, **({"loaders": tuple(code)} if code else {})}

    @override
    def reset(self) -> None:
        self._yielded = 0
        self._before: State = None  # the state of the input before a sample of several records

    @override
    def splits_element(self) -> bool:
        return self._yielded > 0 or super().splits_element()

    @override
    def states_before(self) -> list[State] | None:
        return None if self._before is None else [self._before]

    def function(self) -> Any:
        """Return the function of a sample."""
        if len(self.bound) == 1:
            return next(iter(self.bound.values()))
        return self._cooked

    def _cooked(self, sample: dict[str, Any]) -> Any:
        place, *_ = sample["__restore_key__"]
        return self.bound[_label(place, sample["__subflavors__"])](sample)

    @override
    def items(self) -> Iterator[Any]:
        cook, source, cooked = self.function(), self.source, self.counter.before
        before: State = None
        previous = getattr(source, "previous_state", None)  # cheaper than a state of each sample
        samples = iter(source.items())
        while True:
            if previous is None:
                before = source.state()
            try:
                sample = next(samples)
            except StopIteration:
                self.counter.end(cooked)
                return
            try:
                cooked = cook(sample)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                cooked = self.counter.handle(sample, error, cooked)
                self._yielded = 0
                continue
            if type(cooked) is list:
                yield from self._several(cooked, before if previous is None else previous())
            else:
                yield cooked

    def _several(self, records: list[Any], before: State) -> Iterator[Any]:
        for number in range(self._yielded, len(records)):
            is_last = number + 1 == len(records)
            self._before = None if is_last else before
            self._yielded = 0 if is_last else number + 1
            yield records[number]
        self._yielded = 0


def _label(place: str, subflavors: Mapping[str, Any]) -> bytes:
    label = orjson.dumps([place, subflavors], default=repr, option=orjson.OPT_SORT_KEYS)
    return compact_copy(label)
