"""`DefaultTaskEncoder`: the steps from crude samples to training items, in Energon's names."""

import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from types import CodeType
from typing import Any, Final, Generic, TypeVar

from dagster_dataops.data import run_operator
from dagster_dataops.errors import (
    DataPipelineError,
    PipelineDefinitionError,
    StreamDefinitionError,
)
from dagster_dataops.library.cook_operator import cook
from dagster_dataops.library.sample_batches import batched_as, converted
from dagster_dataops.operators.outcomes.packed_window import forward_window
from dagster_dataops.operators.registry import OperatorRegistry
from dagster_dataops.pipelines.pipeline import Pipeline, pipeline
from dagster_dataops.records import RESTORE_KEY, Record
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.factories import read_sequence
from dagster_dataops.streams.stages.item_counts import (
    CountedItems,
    InReadingProcess,
    count_of_items,
)
from dagster_dataops.streams.stages.mapping import IndexedMap, current_index
from dagster_dataops.training.cooking.cookers import Cooker
from dagster_dataops.training.cooking.crude_streams import CrudeStream
from dagster_dataops.training.cooking.group_batches import GroupBatches
from dagster_dataops.training.cooking.restored_seeds import with_restored_seeds
from dagster_dataops.training.cooking.samples import Sample
from dagster_dataops.training.decoding.sample_decoder import Decoder
from dagster_dataops.training.filestores.lazy_files import with_lazy_files

F = TypeVar("F")
S1 = TypeVar("S1")
S2 = TypeVar("S2")
B1 = TypeVar("B1")
B2 = TypeVar("B2")

SAMPLE: Final = "sample"
BATCH: Final = "batch"

_SAMPLE_INDEX: Final = "current_sample_index"
_BATCH_INDEX: Final = "current_batch_index"
_BEFORE_BATCH: Final = (  # the steps between the cooker and `batch`
    *("encode_sample", "preencode_sample", "postencode_sample"),
    *("select_samples_to_pack", "pack_selected_samples", "pack_group", "batch_group_criterion"),
)

_REGISTRY: Final = OperatorRegistry(run_operator)
_group: Any = _REGISTRY.new_group("encoder")


def stateless(function: F | None = None, /, *, restore_seeds: bool = False, **options: Any) -> Any:
    """Mark a function whose result depends only on its arguments, as Energon needs it.

    Args:
        function: The function, where the decorator is used without parentheses.
        restore_seeds: Whether `random`, ``numpy.random`` and PyTorch are seeded by the restore key
            of the record while the function runs, so that `restore_record` makes the same record
            again. A record gets the same random numbers in every epoch, unlike in Energon, whose
            keys have the number of the sample; ``map(random=True)`` draws others in each epoch.
        **options: Further options of Energon; without effect.

    Raises:
        TypeError: ``restore_seeds`` is given for a coroutine function.

    Example:
        >>> class Augmenting(DefaultTaskEncoder):
        ...     @stateless(restore_seeds=True)
        ...     def encode_sample(self, sample):
        ...         return {**sample, "angle": random.uniform(-5, 5)}
    """
    del options

    def decorated(function: Any) -> Any:
        return with_restored_seeds(function) if restore_seeds else function

    return decorated if function is None else decorated(function)


def _as_sample(record: Record) -> Sample:
    """Return a record with its keys as attributes, as cookers return it."""
    sample = Sample.__new__(Sample)
    sample.update(with_lazy_files(record))
    return sample


class Encode(_group):
    """Apply ``encode_sample`` of a task encoder to each record."""

    def __init__(self, encode: Callable[[Any], Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._encode = encode

    def forward(self, record: dict) -> Any:  # type: ignore[type-arg]
        return self._encode(_as_sample(record))


class Pack(_group):
    """Pack windows of records with the methods of a task encoder."""

    def __init__(
        self,
        select: Callable[[list[Any]], Iterable[Sequence[Any]]],
        pack: Callable[[list[Any]], Any],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._select, self._pack = select, pack

    def forward_window(self, records: list[Record]) -> Any:
        return forward_window(self, [_as_sample(record) for record in records])

    def select_samples_to_pack(self, samples: list[Any]) -> Iterable[Sequence[Any]]:
        return self._select(samples)

    def pack_selected_samples(self, samples: list[Any]) -> Any:
        return self._pack(samples)


def _unknown(name: str) -> DataPipelineError:
    msg = (
        f"{name} is known while steps of the task encoder run for a loader or a dataset; a method "
        "of the class must name it, and no item is made again then"
    )
    return DataPipelineError(msg)


def in_shuffled_windows(samples: CrudeStream, size: int | None) -> CrudeStream:
    """Return samples with windows of ``size`` of them shuffled; ``None`` and 1 keep the order."""
    return samples.shuffle(size) if size is not None and size > 1 else samples


def _list_of(step: Callable[[Any], Iterable[Any]], item: Any) -> list[Any]:
    """Return the items of a generator; their restore keys end with their number."""
    return [_numbered(part, number) for number, part in enumerate(step(item))]


def _numbered(part: Any, number: int) -> Any:
    key = part.get(RESTORE_KEY) if isinstance(part, dict) else None
    if not isinstance(key, (list, tuple)):
        return part
    part = copy(part)  # the generator may yield one object several times
    part[RESTORE_KEY] = [*key, number]
    return part


def _stream_of(step: Callable[[Any], Iterable[Any]], item: Any) -> DataPipelineBuilder:
    return read_sequence(_list_of(step, item))


def _code_of(method: object) -> CodeType | None:
    function = getattr(method, "fget", None) or getattr(method, "__func__", method)
    return getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None


def _names_in(code: CodeType | None) -> Iterator[str]:
    if code is not None:
        yield from code.co_names
        for const in code.co_consts:
            yield from _names_in(const) if isinstance(const, CodeType) else ()


class DefaultTaskEncoder(Generic[S1, S2, B1, B2]):
    """The steps from crude samples to training items. Subclasses override what they need.

    The type parameters have no effect.

    Attributes:
        cookers: The cookers, in order; the first one that takes the subflavors of a dataset is
            used. Datasets that declare their ``sample_type`` need none.
        decoder: Makes values of the bytes of parts and of files of stores, such as a
            `SampleDecoder`; ``None`` for bytes. ``auto``: bytes for cookers, values for datasets
            that declare their ``sample_type``.

    Args:
        encoded_sample_type: The class of encoded samples, ``dict``, or ``None`` to keep the class.
        raw_batch_type: The class of batches, such as one of `Batch`; ``dict``; or ``None`` for
            lists.
        batch_type: The class of encoded batches, ``dict``, or ``None`` to keep the class.
    """

    cookers: Sequence[Cooker | Callable[..., Any]] = ()
    decoder: Decoder = "auto"
    _encoded_sample_type: type | None = None
    _raw_batch_type: type | None = None
    _batch_type: type | None = None

    def __init__(
        self,
        *,
        encoded_sample_type: type | None = None,
        raw_batch_type: type | None = None,
        batch_type: type | None = None,
    ) -> None:
        self._encoded_sample_type = encoded_sample_type
        self._raw_batch_type, self._batch_type = raw_batch_type, batch_type

    @property
    def current_sample_index(self) -> int:
        """The number of the present call of a step, counted from 0: different in every process.

        Raises:
            DataPipelineError: No step runs.
        """
        current = current_index()
        if current is None:
            raise _unknown(_SAMPLE_INDEX)
        return current.number

    @property
    def current_batch_index(self) -> int:
        """The number of the batch that is made, counted from 0 on each rank.

        In a step before `batch` it is that of the batch for which samples are being collected; a
        step that is a generator makes all its items at once. Without batches, it is that of the
        sample. If another method than `batch` and `encode_batch` uses it, the steps after the
        cooker run in the reading process, not in workers.

        Raises:
            DataPipelineError: No step runs.
        """
        current, count = current_index(), count_of_items()
        if current is not None and current.kind == BATCH:
            return current.number
        if count is None:
            raise _unknown(_BATCH_INDEX)
        return count

    def encode_sample(self, sample: Any) -> Any:
        """Return the encoded sample; called for each cooked one. A generator may yield several."""
        return converted(sample, self._encoded_sample_type)

    def preencode_sample(self, sample: Any) -> Any:
        """Return the sample that is packed, in place of `encode_sample`."""
        return self.encode_sample(sample)

    def select_samples_to_pack(self, samples: list[Any]) -> list[list[Any]]:
        """Return groups of the samples of a window; each becomes a pack."""
        raise NotImplementedError

    def postencode_sample(self, sample: Any) -> Any:
        """Return the sample that `pack_selected_samples` gets; called for each selected one."""
        return sample

    def pack_selected_samples(self, samples: list[Any]) -> Any:
        """Return the pack of a group, or several in a list or a generator."""
        raise NotImplementedError

    def batch(self, samples: list[Any]) -> Any:
        """Return the batch of a list of samples: of ``raw_batch_type``, or else the list itself.

        A batch of a class of `Batch` has the list of the keys of its samples as its own key. Keep
        them in others: ``{"__restore_key__": [one["__restore_key__"] for one in samples]}``.
        `restore_record` makes the batch again of this list.
        """
        if self._raw_batch_type is None:
            return samples
        return batched_as(self._raw_batch_type, samples)

    def batch_group_criterion(self, sample: Any) -> tuple[Hashable, int | None]:
        """Return the group of a sample, whose batches have samples of this group alone.

        Also the size of its batches; ``None`` for the ``batch_size`` of the dataset. Groups are
        used if this method is overridden.
        """
        del sample
        return None, None

    def encode_batch(self, batch: Any) -> Any:
        """Return the encoded batch; by default the batch as ``batch_type``, if it is given."""
        return converted(batch, self._batch_type)

    def pack_group(self, samples: list[Any]) -> Any:
        """Return the pack of a group, after `postencode_sample` of each sample."""
        return self.pack_selected_samples([self.postencode_sample(sample) for sample in samples])

    @property
    def makes_groups(self) -> bool:
        """Whether `batch_group_criterion` is overridden."""
        return self._overrides("batch_group_criterion")

    def _overrides(self, *names: str) -> bool:
        kind, default = type(self), DefaultTaskEncoder
        return any(getattr(kind, name) is not getattr(default, name) for name in names)

    def _check_packing(self, size: int | None) -> None:
        """Check that a window size and both methods are given, or none of them.

        Raises:
            StreamDefinitionError: Only some are.
        """
        methods = ("select_samples_to_pack", "pack_selected_samples")
        missing = [name for name in methods if not self._overrides(name)]
        if size is not None and missing:
            reason = f"packing_buffer_size needs {missing[0]}() of {type(self).__name__}"
            raise StreamDefinitionError("pack", reason)
        if size is None and len(missing) == 1:
            reason = f"{type(self).__name__} has no {missing[0]}(); packing needs both methods"
            raise StreamDefinitionError("pack", reason)

    def stream(
        self,
        crude: CrudeStream,
        *,
        cache_pool: Any = None,
        shuffle_buffer_size: int | None = None,
        packing_buffer_size: int | None = None,
        batch_size: int | None = None,
        batch_drop_last: bool = False,
        batches: bool = True,
    ) -> DataPipelineBuilder:
        """Return the stream of training items of crude samples.

        Args:
            crude: The samples.
            cache_pool: The cache pool for cookers that need one.
            shuffle_buffer_size: The number of crude samples of each shuffled window.
            packing_buffer_size: The number of samples of each packed window.
            batch_size: The number of items of a batch; ``None`` for no batches.
            batch_drop_last: Whether to drop the last batch if it is not full.
            batches: Whether items are batches, with ``batch_size`` or `batch_group_criterion`.

        Raises:
            CookerError: No cooker fits a dataset, or its parameters do not.
            StreamDefinitionError: A method is missing, or a size is invalid.
        """
        self._check_packing(packing_buffer_size)
        groups = batches and self.makes_groups
        makes_batches = groups or batch_size is not None
        samples = in_shuffled_windows(crude, shuffle_buffer_size)
        stream: DataPipelineBuilder = samples.cook(
            list(self.cookers), cache_pool, decoder=self.decoder
        )
        counts = makes_batches and self._counts_batches()
        if counts:
            stream = stream.then(InReadingProcess(stream.stage))
        stream = self._encoded(stream, packing_buffer_size, SAMPLE if makes_batches else BATCH)
        if groups:
            criterion = self.batch_group_criterion
            stream = stream.then(GroupBatches(stream.stage, criterion, batch_size, batch_drop_last))
        elif batch_size is not None:
            stream = stream.bucket(batch_size, batch_drop_last)
        if counts:
            stream = stream.then(CountedItems(stream.stage))
        changes = self._overrides("batch", "encode_batch") or self._raw_batch_type
        if not makes_batches or (not changes and self._batch_type is None):
            return stream
        return self._mapped(stream, self.batch, self.encode_batch, kind=BATCH)

    def _encoded(
        self, stream: DataPipelineBuilder, packing_buffer_size: int | None, kind: str
    ) -> DataPipelineBuilder:
        """Return the stream of the items of batches, made of cooked samples."""
        packs = packing_buffer_size is not None
        encode = self._encode(packs=packs)
        if encode is not None:
            stream = self._mapped(stream, encode, kind=SAMPLE if packs else kind)
        if packing_buffer_size is not None:
            return stream.pack_windows(
                packing_buffer_size, self.select_samples_to_pack, self.pack_group
            )
        if self._overrides("postencode_sample"):
            stream = self._mapped(stream, self.postencode_sample, kind=kind)
        return stream

    def _encode(self, *, packs: bool) -> Callable[[Any], Any] | None:
        """Return the step that encodes cooked samples; ``None`` if it changes none."""
        encodes = self._overrides("encode_sample") or self._encoded_sample_type is not None
        if self._overrides("preencode_sample") and (packs or not encodes):
            return self.preencode_sample
        if not encodes:
            return None
        return self.preencode_sample if packs else self.encode_sample

    def _mapped(
        self, stream: DataPipelineBuilder, *steps: Callable[[Any], Any], kind: str
    ) -> DataPipelineBuilder:
        """Return a stream with steps applied to each item; a generator yields several items."""
        *before, last = steps
        if not inspect.isgeneratorfunction(inspect.unwrap(last)):
            return self._with_map(stream, steps, kind)
        if self._uses_indices():
            listed = self._with_map(stream, (*before, partial(_list_of, last)), kind)
            return listed.yield_from(read_sequence)
        if before:
            stream = self._with_map(stream, tuple(before), kind)
        return stream.yield_from(partial(_stream_of, last))

    def _with_map(
        self, stream: DataPipelineBuilder, steps: tuple[Callable[[Any], Any], ...], kind: str
    ) -> DataPipelineBuilder:
        if self._uses_indices():
            return stream.then(IndexedMap(stream.stage, steps, kind))
        return stream.map(list(steps))

    def _uses_indices(self) -> bool:
        """Return whether the code of a method names `current_sample_index` or its like."""
        named = {name for method in self._own() for name in self._named_in(method)}
        return not named.isdisjoint((_SAMPLE_INDEX, _BATCH_INDEX))

    def _counts_batches(self) -> bool:
        """Return whether a step before `batch` names `current_batch_index`, or what it calls."""
        defined, reached = self._own(), set(_BEFORE_BATCH)
        unread = set(reached)
        while unread:
            named = set(self._named_in(unread.pop()))
            unread |= (named & defined) - reached
            reached |= named
        return _BATCH_INDEX in reached

    def _own(self) -> set[str]:
        """Return the names of what the classes of the encoder define themselves."""
        return {name for kind in self._kinds() for name in vars(kind)}

    def _named_in(self, method: str) -> Iterator[str]:
        """Yield the names in the code of a method, as each class of the encoder defines it."""
        for kind in self._kinds():
            yield from _names_in(_code_of(vars(kind).get(method)))

    def _kinds(self) -> list[type]:
        known = DefaultTaskEncoder.__mro__
        return [kind for kind in type(self).__mro__ if kind not in known]

    def pipeline(
        self,
        name: str,
        *,
        packing_buffer_size: int | None = None,
        cache_pool: Any = None,
        **settings: Any,
    ) -> Pipeline:
        """Return the pipeline of the same steps; its source is a crude stream.

        Its nodes are ``cooked``, ``encoded`` if `encode_sample` is overridden, and ``packed`` with
        a window size. Each writes its result, with a checkpoint and an error file.

        Args:
            name: The name of the pipeline.
            packing_buffer_size: The number of samples of each packed window; ``None`` for no packs.
            cache_pool: The cache pool for cookers that need one.
            **settings: Execution settings of all nodes, such as ``_max_workers=8``.

        Raises:
            PipelineDefinitionError: A method of packing is missing.
        """
        try:
            self._check_packing(packing_buffer_size)
        except StreamDefinitionError as error:
            raise PipelineDefinitionError(name, error.reason) from error
        packs = packing_buffer_size is not None
        with pipeline(name) as ppl:
            ppl.cooked = cook(list(self.cookers), cache_pool, decoder=self.decoder, **settings)
            if (encode := self._encode(packs=packs)) is not None:
                ppl.encoded = Encode(encode, **settings)
            if packs:
                ppl.packed = Pack(
                    self.select_samples_to_pack,
                    self.pack_group,
                    _batch_size=packing_buffer_size,
                    **settings,
                )
        return ppl


TaskEncoder = DefaultTaskEncoder
