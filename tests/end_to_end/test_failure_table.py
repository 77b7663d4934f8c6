"""The failure table: the failures of a run under Dagster, and the tests of its resumption.

Every test compares the bytes of the result with those of an undisturbed run. It also counts the
calls, so that no finished call is repeated. All tests but those of tests/assets use a real server.

an operator raises, `RetryPolicy`
    test_a_retry_of_the_step_resumes_where_the_attempt_stopped
SIGKILL of a step, `RetryPolicy`
    test_a_killed_step_is_retried_and_resumes_where_it_stopped
re-execution from failure
    test_a_killed_run_that_is_re_executed_from_its_failure_resumes_where_it_stopped
re-execution from asset failure
    test_a_re_execution_keeps_finished_results_and_resumes_the_others
re-execution of all steps
    test_a_re_execution_of_all_steps_resumes_unfinished_results
re-execution of selected steps
    test_a_re_execution_keeps_finished_results_and_resumes_the_others
automatic retry of a run
    test_a_run_that_dagster_itself_retries_resumes_where_it_stopped
Materialize after a killed run
    test_a_killed_run_that_is_launched_again_resumes_where_it_stopped
Materialize after a cancelled run
    test_a_run_with_many_calls_in_flight_is_cancelled_at_once_and_resumes_later
termination, 64 calls in flight
    test_a_run_with_many_calls_in_flight_is_cancelled_at_once_and_resumes_later
termination, `RetryPolicy`
    test_one_termination_ends_a_run_with_a_retry_policy
forced termination
    test_a_run_cancelled_by_force_ends_and_the_next_run_resumes
SIGTERM to a step
    test_a_terminated_step_settles_finished_records
SIGKILL of the run's process, in-process
    test_a_killed_run_that_is_launched_again_resumes_where_it_stopped
SIGKILL of the run's process, multiprocess
    test_an_orphaned_step_ends_and_its_successor_waits_for_it
a folder that stays locked
    test_a_folder_that_another_run_holds_is_waited_for_then_refused_by_its_name
SIGKILL of a step with worker processes
    test_a_killed_step_is_retried_and_resumes_where_it_stopped
SIGKILL between publishing and success
    test_a_result_that_was_published_before_the_kill_is_not_made_again
the server is killed, its runs are not
    test_runs_outlive_the_code_server_and_the_server
the code server is killed
    test_runs_outlive_the_code_server_and_the_server
Ctrl-C in the server's terminal
    test_a_run_that_ended_with_its_server_resumes_after_the_restart
a power cut
    test_a_run_that_was_killed_with_everything_resumes_after_the_restart
the database is slow or away
    test_a_hanging_database_costs_log_lines_and_delays_nothing
the operator was edited
    test_edited_code_starts_afresh_with_a_log_line_unless_resuming_across_code
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
