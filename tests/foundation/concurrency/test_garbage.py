"""How often garbage is collected."""

import gc

from dagster_dataops.foundation.concurrency.garbage import collected_rarely

AGED = """
import gc
from dagster_dataops.foundation.concurrency.garbage import objects_that_stay

with objects_that_stay():
    made = [[number] for number in range(1_000)]
oldest = {id(one) for one in gc.get_objects(generation=2)}
print(sum(id(one) in oldest for one in made), gc.get_count()[0] < 700)
"""

FROZEN = """
import gc
from dagster_dataops.foundation.concurrency.garbage import objects_that_stay

gc.freeze()
frozen = gc.get_freeze_count()
with objects_that_stay():
    pass
print(gc.get_freeze_count() == frozen, frozen > 0)
"""


def test_garbage_is_collected_rarely_in_a_block_and_as_before_after_it():
    before = gc.get_threshold()
    with collected_rarely():
        assert gc.get_threshold()[0] == 20_000
        with collected_rarely():
            pass
        assert gc.get_threshold()[0] == 20_000
    assert gc.get_threshold() == before


def test_objects_of_the_block_are_looked_at_only_with_the_oldest(run_python):
    oldest, young = run_python(AGED).split()
    assert (oldest, young) == ("1000", "True")


def test_what_the_user_froze_stays_frozen(run_python):
    assert run_python(FROZEN).split() == ["True", "True"]
