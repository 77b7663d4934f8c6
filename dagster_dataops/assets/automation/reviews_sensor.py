"""reviews_sensor: launch a run when people have decided about the records of a node."""

from collections.abc import Iterator, Sequence

import dagster as dg

from dagster_dataops.assets.automation.awaited_runs import AwaitedRun, awaiting_sensor, parts_of
from dagster_dataops.assets.metadata.metadata_keys import REVIEWS_TAG
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline
from dagster_dataops.library.review.asking import Ask
from dagster_dataops.library.review.review_folder import ReviewFolder, review_path, undecided


def reviews_sensors(planned: PlannedPipeline) -> list[dg.SensorDefinition]:
    """Return the sensor ``<pipeline>_reviews``; none if no node needs it.

    Nodes with ``review.Ask`` need it. It reads the decisions about questions that a run has asked.
    When all of a node are decided, or a file is wrong, it launches a run of the node and of all
    nodes downstream.
    """
    plans = [plan for plan in planned.plans if isinstance(plan.node.operator, Ask)]
    if not plans:
        return []
    sensor = awaiting_sensor(
        planned,
        plans,
        "reviews",
        _waiting,
        description="Launches a run when people have decided about the records of a node.",
        skipped=lambda left: f"undecided questions: {left:,}",
    )
    return [sensor]


def _waiting(
    context: dg.SensorEvaluationContext, plans: Sequence[AssetPlan], dataops: DataOpsResource
) -> Iterator[tuple[AwaitedRun, int]]:
    """Yield each run that reads decisions, and the number of questions without one.

    A wrong file with decisions ends the wait: the run fails and names it.
    """
    for plan, key in parts_of(context, plans):
        operator = plan.node.operator
        assert isinstance(operator, Ask)  # noqa: S101 - of the plans of reviews
        path = review_path(operator.to, plan.folder(dataops, key).path, dataops.root_path)
        folder = ReviewFolder(path, operator.agreement)
        waiting = folder.waiting
        if waiting:
            state, answers = folder.state, folder.answers()
            left = len(undecided(waiting, folder.verdicts(answers)))
            run = AwaitedRun(REVIEWS_TAG, plan, key, f"{waiting} {state}")
            yield run, 0 if answers.faults else left
