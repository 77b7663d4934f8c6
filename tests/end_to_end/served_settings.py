"""The resources and the executor of all pipelines of one server: merged definitions share them.

The environment variable SLOW_PIPELINE_HOME names a folder. The results are in it.
"""

import os
import signal
from collections.abc import Sequence
from typing import Any

import dagster as dg
from paced import HOME  # beside this file, in the server's home
from typing_extensions import override

from dagster_dataops import DataOpsResource, JsonlDataset, LLMResource, Operator, Price, RunReport
from dagster_dataops.assets.definitions import PipelineOptions
from dagster_dataops.checkpoints.folder.manifest import NodeFolder


class Mortal(DataOpsResource):
    """Dies once right after a result was published, if the file ``<pipeline>.die`` exists."""

    @override
    def run_operator(
        self,
        context: Any,
        operator: Operator,
        inputs: Sequence[JsonlDataset],
        folder: NodeFolder,
        *more: Any,
    ) -> RunReport:
        report = super().run_operator(context, operator, inputs, folder, *more)
        order = HOME / f"{folder.path.relative_to(HOME / 'results').parts[0]}.die"
        if order.exists():
            order.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return report


RESOURCE = Mortal(root=str(HOME / "results"), lock_seconds=1800)
CLIENTS = {"default": LLMResource(prices={"rule": Price(input=0.25, output=2.0)})}


@dg.configured(dg.multi_or_in_process_executor, config_schema=dg.Permissive())
def executor(config: Any) -> Any:
    """Run steps in the process of the run, unless a launch chooses ``multiprocess``."""
    return config or {"in_process": {}}


SETTINGS: PipelineOptions = {"resource": RESOURCE, "clients": CLIENTS, "executor": executor}
