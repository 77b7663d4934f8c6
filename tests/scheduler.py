"""The scheduler of pytest-xdist: each test goes to the next free process; some stay together."""

from contextlib import suppress
from typing import Final

from typing_extensions import override
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

_END_TO_END: Final = "tests/end_to_end/"
_WITHOUT_THE_SHARED_SERVER: Final = (
    "tests/end_to_end/test_artefacts.py",
    "tests/end_to_end/test_celery.py",
    "tests/end_to_end/test_dg.py",
    "tests/end_to_end/test_failure_table.py",
    "tests/end_to_end/test_kubernetes.py",
    "tests/end_to_end/test_postgres.py",
    "tests/end_to_end/test_report_page.py",
    "tests/end_to_end/test_restarts.py",
    "tests/end_to_end/test_staleness.py",
)
_TOGETHER: Final = (
    *_WITHOUT_THE_SHARED_SERVER,
    "tests/assets/test_external_run.py",
    "tests/assets/test_snapshot_size.py",
    "tests/foundation/hashing/test_value_digests.py",
    "tests/foundation/test_entry_points.py",
    "tests/foundation/places/objects/test_object_store.py",
    "tests/library/export/test_huggingface_hub.py",
    "tests/library/pii/test_named_entities.py",
    "tests/library/test_file_heads.py",
    "tests/models/batches/test_batch_delivery.py",
    "tests/models/test_interruptions.py",
    "tests/test_definitions.py",
    "tests/test_distributions.py",
    "tests/test_documents.py",
)


class Scheduler(LoadScopeScheduling):
    """Distributes tests, the largest groups first.

    The end-to-end tests run in one process, because they share one server. The tests of a module
    with an expensive fixture run in one process too. Every other test is a separate group.
    """

    @override
    def _split_scope(self, nodeid: str) -> str:
        """Return the name of the group of a test."""
        path = nodeid.partition("::")[0]
        if path in _TOGETHER:
            return path
        return _END_TO_END if path.startswith(_END_TO_END) else nodeid

    @override
    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Forget a group that is done: after each test the scheduler looks at all that it knows."""
        super().mark_test_complete(node, item_index, duration)
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][scope].values()):
            del self.assigned_work[node][scope]

    @override
    def schedule(self) -> None:
        """Give each process a second group: with one test alone it waits for another one.

        A process that replaces a dead one would otherwise wait for ever.
        """
        super().schedule()
        for node in self.nodes:
            self._reschedule(node)

    @override
    def _reschedule(self, node: WorkerController) -> None:
        """Give groups only to processes that have collected the tests."""
        if node in self.registered_collections:
            with suppress(OSError):  # it has died: its groups go to others when xdist notices
                super()._reschedule(node)
