"""Operations that group items into lists."""

from collections.abc import Callable, Iterable
from typing import Any, Self

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.selectors.selector import Selector
from dagster_dataops.streams.core.arguments import check_callable, check_count
from dagster_dataops.streams.stage_chain import StageChain, as_selector
from dagster_dataops.streams.stages.bucketing import Bucket
from dagster_dataops.streams.stages.cost_buckets import DynamicBucket
from dagster_dataops.streams.stages.length_buckets import BucketByLength


class ListOperations(StageChain):
    """The operations that group the items of a stream."""

    def bucket(self, bucket_size: int, drop_remainder: bool = False) -> Self:
        """Make lists of ``bucket_size`` items; the last one may be shorter, unless dropped."""
        check_count("bucket", "bucket_size", bucket_size, 1)
        return self.then(Bucket(self.stage, bucket_size, drop_remainder))

    def bucket_by_length(
        self,
        bucket_sizes: Iterable[tuple[int, int]],
        selector: str | Selector | None = None,
        min_data_len: int = 1,
        skip_below_min_examples: bool = False,
        skip_above_max_examples: bool = False,
        drop_remainder: bool = False,
    ) -> Self:
        """Make lists of items of similar length.

        Args:
            bucket_sizes: For each bucket, a pair (number of items, maximum length).
            selector: The element that has the length; with several, the longest counts. The item
                itself if ``None``. An integer is its own length.
            min_data_len: The minimum length.
            skip_below_min_examples: Whether to skip shorter items; otherwise they are failures.
            skip_above_max_examples: Whether to skip items longer than every bucket; otherwise they
                are failures.
            drop_remainder: Whether to drop the last list if it is not full.
        """
        sizes = tuple(sorted(((int(n), int(length)) for n, length in bucket_sizes), key=_by_length))
        if not sizes:
            raise StreamDefinitionError("bucket_by_length", "bucket_sizes is empty")
        for count, length in sizes:
            check_count("bucket_by_length", "a size of bucket_sizes", count, 1)
            check_count("bucket_by_length", "a length of bucket_sizes", length, 0)
        return self.then(
            BucketByLength(
                self.stage,
                sizes,
                as_selector(selector),
                min_data_len,
                skip_below_min_examples,
                skip_above_max_examples,
                drop_remainder,
            )
        )

    def dynamic_bucket(
        self,
        threshold: float,
        cost_fn: Callable[[Any], float],
        bucket_creation_fn: Callable[[list[Any]], tuple[list[Any], list[Any]]] | None = None,
        min_num_examples: int | None = None,
        max_num_examples: int | None = None,
        drop_remainder: bool = False,
    ) -> Self:
        """Make lists of items whose costs add up to ``threshold`` or more.

        Args:
            threshold: The total cost that completes a list.
            cost_fn: Returns the cost of an item.
            bucket_creation_fn: Given the collected items, returns (lists, items left over). The
                items left over begin the next list, at cost 0.
            min_num_examples: The minimum number of items in a list.
            max_num_examples: The maximum number of items in a list.
            drop_remainder: Whether to drop the last list if it is not full.
        """
        check_callable("dynamic_bucket", "cost_fn", cost_fn)
        if not threshold > 0:
            raise StreamDefinitionError("dynamic_bucket", f"threshold is {threshold}, not above 0")
        if max_num_examples is not None:
            least = max(1, min_num_examples or 0)
            check_count("dynamic_bucket", "max_num_examples", max_num_examples, least)
        return self.then(
            DynamicBucket(
                self.stage,
                threshold,
                cost_fn,
                bucket_creation_fn,
                min_num_examples,
                max_num_examples,
                drop_remainder,
            )
        )


def _by_length(size: tuple[int, int]) -> int:
    return size[1]
