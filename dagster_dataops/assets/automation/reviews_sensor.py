"""reviews_sensor: launch a run when people have decided about the records of a node."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import dagster as dg

from dagster_dataops.assets.automation.awaited_runs import (
    AwaitedRun,
    awaiting_sensor,
    downstream,
    parts_of,
)
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import DataOpsResource, resource_of
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline
from dagster_dataops.library.review.asking import Ask
from dagster_dataops.library.review.review_folder import ReviewFolder, review_path, undecided

_TAG: Final = "dagster_dataops/reviews"


class _Review(NamedTuple):
    """The review of a node that waits for decisions.

    Attributes:
        run: The run that takes them.
        undecided: The number of questions without a decision that counts.
        faulty: Whether a file with decisions is wrong, which the run tells.
    """

    run: AwaitedRun
    undecided: int
    faulty: bool


def reviews_sensors(planned: PlannedPipeline) -> list[dg.SensorDefinition]:
    """Return the sensor ``<pipeline>_reviews``; none if no node needs it.

    Nodes with ``review.Ask`` need it. It reads the decisions about questions that a run has asked.
    When all of a node are decided, or a file is wrong, it launches a run of the node and of all
    nodes downstream.
    """
    plans = [plan for plan in planned.plans if isinstance(plan.node.operator, Ask)]
    if not plans:
        return []
    targets = {plan.spec.key: downstream(planned, plan) for plan in plans}

    def look(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        requests, left = [], 0
        for review in _waiting(context, plans, resource_of(context, planned.resource_key)):
            if review.undecided and not review.faulty:
                left += review.undecided
            elif request := review.run.request(context, targets[review.run.plan.spec.key]):
                requests.append(request)
        if requests:
            return dg.SensorResult(run_requests=requests)
        return dg.SkipReason(f"undecided questions: {left:,}")

    description = "Launches a run when people have decided about the records of a node."
    return [awaiting_sensor(planned, "reviews", targets, look, description)]


def _waiting(
    context: dg.SensorEvaluationContext, plans: Sequence[AssetPlan], dataops: DataOpsResource
) -> Iterator[_Review]:
    for plan, key in parts_of(context, plans):
        operator = plan.node.operator
        assert isinstance(operator, Ask)  # noqa: S101 - of the plans of reviews
        path = review_path(operator.to, plan.folder(dataops, key).path, dataops.root_path)
        folder = ReviewFolder(path, operator.agreement)
        waiting = folder.waiting
        if waiting:
            state, answers = folder.state, folder.answers()
            left = len(undecided(waiting, folder.verdicts(answers)))
            run = AwaitedRun(_TAG, plan, key, f"{waiting} {state}")
            yield _Review(run, left, bool(answers.faults))
