"""``cook()``: the operator that makes records of an index of crude samples."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dagster_dataops.data import run_operator
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.registry import OperatorRegistry
from dagster_dataops.training.cooking.cookers import Cookers, chosen_cooker, listed_cookers
from dagster_dataops.training.cooking.index_cooking import IndexCooker
from dagster_dataops.training.decoding.sample_decoder import Decoder

if TYPE_CHECKING:
    from dagster_dataops.training.cooking.crude_streams import CrudePipeline, CrudeStream

_REGISTRY: Final = OperatorRegistry(run_operator)
_group: Any = _REGISTRY.new_group("crude")


class Cook(_group):
    """Make records of crude samples.

    The input is the index of a crude dataset; of each line the parts of the sample are read from
    the shard. The first cooker whose subflavors the dataset has is used.
    """

    def __init__(
        self,
        cookers: Any,
        cache_pool: Any = None,
        storage_options: Mapping[str, Any] | None = None,
        decoder: Any = "auto",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._cooker = IndexCooker(listed_cookers(cookers), cache_pool, storage_options, decoder)

    def forward(self, row: dict) -> Any:  # type: ignore[type-arg]
        return self._cooker(row)

    def check_crude(self, source: "CrudeStream | CrudePipeline") -> None:
        """Check that each dataset of a crude source has a cooker.

        Raises:
            CookerError: No cooker fits, or its parameters do not.
        """
        for item in source.sources:
            if not item.is_typed:
                labels = item.labels
                chosen_cooker(self._cooker.cookers, labels.subflavors, labels.aux, item.place)


def cook(
    cookers: Cookers = (),
    cache_pool: Any = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    decoder: Decoder = "auto",
    **settings: Any,
) -> Operator:
    """Return the operator that makes records of a crude source, for a node of a pipeline.

    It runs as other record operators do, with a checkpoint, an error file and retries, in
    processes or threads.

    Args:
        cookers: Cookers or functions, in order; the first one whose subflavors a dataset has is
            used. A dataset that declares its ``sample_type`` needs none.
        cache_pool: The cache pool for cookers that need one.
        storage_options: Arguments of fsspec's file systems, for example credentials.
        decoder: Makes values of the bytes of parts; see `CrudeStream.cook`.
        **settings: Execution settings, such as ``_max_workers=8``.

    Raises:
        CookerError: A cooker is not a function.
    """
    decoding = {} if decoder == "auto" else {"decoder": decoder}
    operator: Operator = Cook(
        cookers=listed_cookers(cookers),
        cache_pool=cache_pool,
        storage_options=storage_options,
        **decoding,
        **settings,
    )
    return operator
