"""``create_bucket_sizes``: the sizes of buckets that hold about as many elements."""

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.streams.core.arguments import check_count

_NAME = "create_bucket_sizes"


def create_bucket_sizes(
    *,
    max_num_elements: int,
    max_seq_len: int,
    min_seq_len: int = 1,
    num_seqs_multiple_of: int = 1,
) -> list[tuple[int, int]]:
    """Return buckets for ``bucket_by_length``: pairs (number of items, maximum length).

    A bucket of ``n`` items has the longest length for which ``n`` items have at most
    ``max_num_elements`` elements, all padded to that length. Shorter items come first.

    Args:
        max_num_elements: The maximum number of elements of a bucket; a multiple of ``max_seq_len``.
        max_seq_len: The length of the longest items.
        min_seq_len: The length of the shortest items, at least 1.
        num_seqs_multiple_of: The number of items of a larger bucket is a multiple of this number.

    Raises:
        StreamDefinitionError: An argument is invalid.

    Example:
        >>> create_bucket_sizes(max_num_elements=16, max_seq_len=4)
        [(16, 1), (8, 2), (5, 3), (4, 4)]
    """
    for name, value in (
        ("max_num_elements", max_num_elements),
        ("max_seq_len", max_seq_len),
        ("min_seq_len", min_seq_len),
        ("num_seqs_multiple_of", num_seqs_multiple_of),
    ):
        check_count(_NAME, name, value, 1)
    if min_seq_len > max_seq_len:
        reason = f"min_seq_len is {min_seq_len}, above max_seq_len, {max_seq_len}"
        raise StreamDefinitionError(_NAME, reason)
    if max_num_elements % max_seq_len:
        reason = (
            f"max_num_elements, {max_num_elements}, is no multiple of max_seq_len, {max_seq_len}"
        )
        raise StreamDefinitionError(_NAME, reason)
    sizes, length = [], 0
    while length < max_seq_len:
        count = max_num_elements // (length + 1)
        length = max_num_elements // count
        if length >= min_seq_len:
            more = count % num_seqs_multiple_of if count > num_seqs_multiple_of else 0
            sizes.append((count - more, length))
    return sizes
