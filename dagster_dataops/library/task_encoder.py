"""`DefaultTaskEncoder`: the steps from crude samples to training items, in Energon's names."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

from dagster_dataops.data import run_operator
from dagster_dataops.errors import PipelineDefinitionError, StreamDefinitionError
from dagster_dataops.library.cook_operator import cook
from dagster_dataops.operators.outcomes.packed_window import forward_window
from dagster_dataops.operators.registry import OperatorRegistry
from dagster_dataops.pipelines.pipeline import Pipeline, pipeline
from dagster_dataops.records import Record
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.training.cooking.cookers import Cooker
from dagster_dataops.training.cooking.crude_streams import CrudeStream
from dagster_dataops.training.cooking.restored_seeds import with_restored_seeds
from dagster_dataops.training.cooking.samples import Sample
from dagster_dataops.training.filestores.lazy_files import with_lazy_files

F = TypeVar("F")
S1 = TypeVar("S1")
S2 = TypeVar("S2")
B1 = TypeVar("B1")
B2 = TypeVar("B2")

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

    def decorated(given: Any) -> Any:
        return with_restored_seeds(given) if restore_seeds else given

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


class DefaultTaskEncoder(Generic[S1, S2, B1, B2]):
    """The steps from crude samples to training items. Subclasses override what they need.

    The type parameters have no effect.

    Attributes:
        cookers: The cookers, in order; the first one that takes the subflavors of a dataset is
            used.
    """

    cookers: Sequence[Cooker | Callable[..., Any]] = ()

    def encode_sample(self, sample: Any) -> Any:
        """Return the encoded sample; called for each cooked one."""
        return sample

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
        """Return the batch of a list of samples; the list itself by default.

        A batch has no restore key of its own, unlike in Energon: keep those of its samples, as in
        ``{"__restore_key__": [one["__restore_key__"] for one in samples]}``. `restore_record` makes
        the batch again of this list.
        """
        return samples

    def encode_batch(self, batch: Any) -> Any:
        """Return the encoded batch."""
        return batch

    def pack_group(self, samples: list[Any]) -> Any:
        """Return the pack of a group, after `postencode_sample` of each sample."""
        return self.pack_selected_samples([self.postencode_sample(one) for one in samples])

    def _overrides(self, *names: str) -> bool:
        own, default = type(self), DefaultTaskEncoder
        return any(getattr(own, name) is not getattr(default, name) for name in names)

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
    ) -> DataPipelineBuilder:
        """Return the stream of training items of crude samples.

        Args:
            crude: The samples.
            cache_pool: The cache pool for cookers that need one.
            shuffle_buffer_size: The number of samples of each shuffled window.
            packing_buffer_size: The number of samples of each packed window.
            batch_size: The number of items of a batch; ``None`` for no batches.
            batch_drop_last: Whether to drop the last batch if it is not full.

        Raises:
            CookerError: No cooker fits a dataset, or its parameters do not.
            StreamDefinitionError: A method is missing, or a size is invalid.
        """
        self._check_packing(packing_buffer_size)
        made: DataPipelineBuilder = crude.cook(list(self.cookers), cache_pool)
        packs = packing_buffer_size is not None
        if self._overrides("encode_sample", *(("preencode_sample",) if packs else ())):
            made = made.map(self.preencode_sample if packs else self.encode_sample)
        if shuffle_buffer_size is not None and shuffle_buffer_size > 1:
            made = made.shuffle(shuffle_buffer_size)
        if packing_buffer_size is not None:
            made = made.pack_windows(
                packing_buffer_size, self.select_samples_to_pack, self.pack_group
            )
        if batch_size is not None:
            made = made.bucket(batch_size, batch_drop_last)
            if self._overrides("batch", "encode_batch"):
                made = made.map([self.batch, self.encode_batch])
        return made

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
        with pipeline(name) as made:
            made.cooked = cook(list(self.cookers), cache_pool, **settings)
            if self._overrides("encode_sample", *(("preencode_sample",) if packs else ())):
                encode = self.preencode_sample if packs else self.encode_sample
                made.encoded = Encode(encode, **settings)
            if packs:
                made.packed = Pack(
                    self.select_samples_to_pack,
                    self.pack_group,
                    _batch_size=packing_buffer_size,
                    **settings,
                )
        return made


TaskEncoder = DefaultTaskEncoder
