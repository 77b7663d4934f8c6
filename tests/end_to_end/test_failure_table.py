"""The failure table: whatever befalls a run under Dagster, and the test that it goes on from there.

Every test compares the bytes of the result with those of an undisturbed run and counts the calls,
so that nothing finished is paid for twice. All run on a real server, but for those of tests/assets.

an operator raises, `RetryPolicy`
    test_a_retry_of_the_step_goes_on_where_the_attempt_stopped
SIGKILL of a step, `RetryPolicy`
    test_a_killed_step_is_retried_and_goes_on_where_it_stopped
re-execution from failure
    test_a_killed_run_that_is_re_executed_from_its_failure_goes_on_where_it_stopped
re-execution from asset failure
    test_a_re_execution_leaves_what_is_finished_and_goes_on_in_the_middle
re-execution of all steps
    test_a_re_execution_of_all_steps_goes_on_in_the_middle_of_what_was_unfinished
re-execution of selected steps
    test_a_re_execution_leaves_what_is_finished_and_goes_on_in_the_middle
automatic retry of a run
    test_a_run_that_dagster_itself_retries_goes_on_where_it_stopped
Materialize after a killed run
    test_a_killed_run_that_is_launched_again_goes_on_where_it_stopped
Materialize after a cancelled run
    test_a_run_with_all_its_calls_in_flight_is_cancelled_at_once_and_goes_on_later
termination, 64 calls in flight
    test_a_run_with_all_its_calls_in_flight_is_cancelled_at_once_and_goes_on_later
forced termination
    test_a_run_that_is_cancelled_by_force_gives_way_and_the_next_goes_on
SIGTERM to a step
    test_a_step_that_is_told_to_end_settles_what_is_finished
SIGKILL of the run's process, in-process
    test_a_killed_run_that_is_launched_again_goes_on_where_it_stopped
SIGKILL of the run's process, multiprocess
    test_an_orphaned_step_ends_by_itself_and_who_goes_on_waits_for_it
a folder that is never given up
    test_a_folder_that_another_run_holds_is_waited_for_then_refused_by_its_name
SIGKILL of a step with worker processes
    test_a_killed_step_is_retried_and_goes_on_where_it_stopped
SIGKILL between publishing and success
    test_a_result_that_was_published_before_the_kill_is_not_made_again
the server is killed, its runs are not
    test_runs_outlive_the_code_server_and_the_server
the code server is killed
    test_runs_outlive_the_code_server_and_the_server
Ctrl-C in the server's terminal
    test_a_run_that_ended_with_its_server_goes_on_after_the_restart
a power cut
    test_a_run_that_was_killed_with_everything_goes_on_after_the_restart
the database is slow or away
    test_a_database_that_hangs_costs_lines_and_holds_up_nothing
the operator was edited
    test_edited_code_starts_afresh_and_says_so_unless_it_is_asked_to_go_on
"""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_row_names_a_test_that_there_is() -> None:
    table = (__doc__ or "").split("\n\n")[-1].splitlines()
    named = {line.strip() for line in table[1::2]}
    written: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        written.update(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))
    assert named <= written
    assert all(line.startswith("    ") == bool(at % 2) for at, line in enumerate(table))
