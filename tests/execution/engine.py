"""Names of the engine for several tests of execution.

Tests import these names from here, so that a move of one in the package is an edit of this module.
"""

from dagster_dataops.execution.agents.agent import Agent
from dagster_dataops.execution.leases.agent_orders import AgentOrders
from dagster_dataops.execution.leases.lease_schedule import LeaseSchedule
from dagster_dataops.execution.records.calling import (
    CallEach,
    Stretch,
    calling_each,
    calling_once,
)
from dagster_dataops.execution.records.record_failures import Failure, Outcome, failure_of
from dagster_dataops.execution.records.span_draft import Finished
from dagster_dataops.execution.timeouts.record_timeout import RecordTimeout
from dagster_dataops.execution.workers import fork_server, protocol, worker_main, worker_pool
from dagster_dataops.execution.workers.idle_workers import idle_workers
from dagster_dataops.execution.workers.protocol import STOP, Kind, Mode, Range
from dagster_dataops.execution.workers.signals import Termination
from dagster_dataops.execution.workers.worker_main import Assignment
from dagster_dataops.execution.workers.worker_pool import WorkerPool
from dagster_dataops.execution.workers.worker_process import WorkerProcess
from dagster_dataops.execution.workplaces import processes
from dagster_dataops.operators.outcomes.record_context import Tally
from dagster_dataops.operators.pickling import receive

__all__ = [
    "STOP",
    "Agent",
    "AgentOrders",
    "Assignment",
    "CallEach",
    "Failure",
    "Finished",
    "Kind",
    "LeaseSchedule",
    "Mode",
    "Outcome",
    "Range",
    "RecordTimeout",
    "Stretch",
    "Tally",
    "Termination",
    "WorkerPool",
    "WorkerProcess",
    "calling_each",
    "calling_once",
    "failure_of",
    "fork_server",
    "idle_workers",
    "processes",
    "protocol",
    "receive",
    "worker_main",
    "worker_pool",
]
