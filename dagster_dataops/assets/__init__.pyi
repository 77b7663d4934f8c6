# The parts to make assets, ops, checks and jobs one by one, and their modules;
# `__init__.py` imports each on first use.

from dagster_dataops.assets.asset_factory import build_operator_assets as build_operator_assets
from dagster_dataops.assets.automation.preview_job import build_preview_job as build_preview_job
from dagster_dataops.assets.decorator import (
    build_operator_asset_specs as build_operator_asset_specs,
)
from dagster_dataops.assets.inputs.forms import DataForm as DataForm
from dagster_dataops.assets.inputs.forms import register_form as register_form
from dagster_dataops.assets.ops import build_operator_job as build_operator_job
from dagster_dataops.assets.ops import build_operator_ops as build_operator_ops
from dagster_dataops.assets.planning.asset_options import AssetOptions as AssetOptions
from dagster_dataops.assets.planning.translator import (
    DataOpsCheckData as DataOpsCheckData,
)
from dagster_dataops.assets.planning.translator import (
    DataOpsTranslatorData as DataOpsTranslatorData,
)
from dagster_dataops.assets.runtime.events import DataOpsEventIterator as DataOpsEventIterator
from dagster_dataops.assets.steps.check_steps import build_operator_checks as build_operator_checks
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline as PlannedPipeline
from dagster_dataops.assets.steps.planned_pipeline import plan_pipeline as plan_pipeline
from dagster_dataops.checkpoints.folder.manifest import NodeFolder as NodeFolder
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy as ResumePolicy
