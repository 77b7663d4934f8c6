"""attempt_context: what the executor knows of an attempt in a step of Dagster."""

from functools import partial
from typing import Any

import dagster as dg

from dagster_dataops.assets.runtime.dagster_progress import DagsterProgress
from dagster_dataops.assets.runtime.external.external_call import external_call
from dagster_dataops.assets.runtime.messenger import Messenger
from dagster_dataops.assets.runtime.observations import Observations
from dagster_dataops.assets.runtime.run_monitor import RunMonitor
from dagster_dataops.assets.runtime.step_context import (
    StepContext,
    continued_runs,
    refreshes,
    run_of,
)
from dagster_dataops.assets.runtime.unreported_results import unreported_in
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.resume.resume_policy import ChosenRecords, ResumePolicy
from dagster_dataops.configuration import config
from dagster_dataops.execution.run_report import RunContext


def attempt_context(
    dataops: Any, context: StepContext, resume: ResumePolicy | ChosenRecords, folder: NodeFolder
) -> RunContext:
    """Return what the executor knows of an attempt in a step."""
    root = dataops.results_root
    messenger = Messenger()
    observations = Observations(context, root, folder)
    continued, unreported = (
        continued_runs(context),
        unreported_in(context, root, folder),
    )
    if call := external_call():
        continued |= frozenset(call.continued)
        unreported = partial(call.is_unreported, root, folder)
    return RunContext(
        run=run_of(context).run_id,
        resume=resume,
        reuse_finished=refreshes(context) and resume is ResumePolicy.AUTO,
        earlier_runs=continued,
        unreported=unreported,
        flush_seconds=dataops.flush_seconds,
        lock_seconds=dataops.lock_seconds,
        progress=DagsterProgress(context.log, observations, messenger),
        should_stop=RunMonitor(context, messenger),
        interrupts=(KeyboardInterrupt, dg.DagsterExecutionInterruptedError),
        root=root.path,
        whole_result_mb=(
            config.whole_result_mb if dataops.whole_result_mb is None else dataops.whole_result_mb
        ),
        clients=dataops.clients,
        result_format=dataops.result_form,
        cluster=config.cluster if dataops.cluster is None else _cluster_of(dataops.cluster),
    )


def _cluster_of(resource: Any) -> Any:
    from dagster_dataops.execution.cluster.ray_cluster import RayCluster  # few runs need it

    return RayCluster.of(resource)
