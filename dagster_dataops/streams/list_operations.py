"""Operations that make lists of items."""

from collections.abc import Callable, Iterable
from typing import Any, Self

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.selectors.selector import Selector
from dagster_dataops.streams.core.arguments import check_callable, check_count
from dagster_dataops.streams.stage_chain import Built, as_selector
from dagster_dataops.streams.stages.bucketing import Bucket
from dagster_dataops.streams.stages.cost_buckets import DynamicBucket
from dagster_dataops.streams.stages.length_buckets import BucketByLength


class Grouping(Built):
    """A stream whose items can be put together."""

    def bucket(self, bucket_size: int, drop_remainder: bool = False) -> Self:
        """Make lists of ``bucket_size`` items; the last may be shorter, unless it is dropped."""
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
        """Make lists of items of like length.

        Args:
            bucket_sizes: (how many items, up to which length) of each bucket.
            selector: Whose length counts, the longest of several; the item's own if ``None``.
                An integer is its own length.
            min_data_len: The least length.
            skip_below_min_examples: Whether shorter ones are passed over; else they are failures.
            skip_above_max_examples: The same of those longer than every bucket.
            drop_remainder: Whether the last list is dropped if it is not full.
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
        """Make lists whose items cost ``threshold`` or more together.

        Args:
            threshold: Of the sum of costs.
            cost_fn: The cost of an item.
            bucket_creation_fn: Makes (lists, items left over) of what was gathered; what is left
                over begins the next list, at no cost.
            min_num_examples: How many items a list has at least.
            max_num_examples: How many items a list has at most.
            drop_remainder: Whether the last list is dropped if it is not full.
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
