"""The scheduler of pytest-xdist: each test goes to the next free process; some stay together."""

from typing import Final

from typing_extensions import override
from xdist.scheduler import LoadScopeScheduling

_END_TO_END: Final = "tests/end_to_end/"
_SERVER_OF_THEIR_OWN: Final = (
    "tests/end_to_end/test_dg.py",
    "tests/end_to_end/test_failure_table.py",
    "tests/end_to_end/test_postgres.py",
    "tests/end_to_end/test_restarts.py",
    "tests/end_to_end/test_staleness.py",
)
_TOGETHER: Final = (
    *_SERVER_OF_THEIR_OWN,
    "tests/stores/test_object_store.py",
    "tests/faults/test_store_kills.py",
    "tests/test_definitions.py",
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
