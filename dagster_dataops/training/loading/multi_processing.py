"""`MultiProcessingReadingService`: read with worker processes."""

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.arguments import check_count
from dagster_dataops.streams.operations import Operations
from dagster_dataops.training.loading.reading_service import ReadingServiceInterface


class MultiProcessingReadingService(ReadingServiceInterface):
    """Read with worker processes: the same items, in the same order, with the same states.

    ``sharding_filter()`` and ``sharding_round_robin_dispatch()`` mark where the workers take over;
    see ``workers()`` of streams.

    Args:
        num_workers: The number of processes; 0 reads in the process of the loader.
        worker_prefetch_cnt: The number of tasks, of up to 64 items each, that a worker may be
            ahead of the loader.
        main_prefetch_cnt: The number of further tasks, of all workers together, that may be
            finished and wait in the process of the loader for a slow one before them.
    """

    def __init__(
        self, num_workers: int = 0, *, worker_prefetch_cnt: int = 10, main_prefetch_cnt: int = 10
    ) -> None:
        counts = {
            "num_workers": num_workers,
            "worker_prefetch_cnt": worker_prefetch_cnt,
            "main_prefetch_cnt": main_prefetch_cnt,
        }
        for name, count in counts.items():
            check_count("MultiProcessingReadingService", name, count, 0)
        self.num_workers, self.worker_prefetch_cnt = num_workers, worker_prefetch_cnt
        self.main_prefetch_cnt = main_prefetch_cnt

    @override
    def initialize(self, datapipe: Operations) -> Operations:
        ahead = max(1, self.worker_prefetch_cnt)
        return datapipe.workers(self.num_workers, ahead, self.main_prefetch_cnt)
