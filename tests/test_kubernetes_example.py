"""Tests of `examples/kubernetes`: the manifests are valid and fit together, and so do the steps."""

import json
import runpy
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

FOLDER = Path(__file__).parents[1] / "examples" / "kubernetes"


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / "manifests.yaml").read_text()))


@pytest.mark.parametrize("manifest", manifests(), ids=lambda one: one["kind"])
def test_a_manifest_is_valid_for_kubernetes(manifest: dict[str, Any]) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")

    kubernetes_validate.validate(manifest, "1.30", strict=True)


def test_code_and_runs_see_the_same_results() -> None:
    claim, deployment, _ = manifests()
    values = yaml.safe_load((FOLDER / "values.yaml").read_text())
    code = deployment["spec"]["template"]["spec"]
    launcher = values["runLauncher"]["config"]["k8sRunLauncher"]
    (variable,) = (one for one in code["containers"][0]["env"] if one["name"].startswith("DATAOPS"))

    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    for volumes in (code["volumes"], launcher["volumes"]):
        assert [one["persistentVolumeClaim"]["claimName"] for one in volumes] == [
            claim["metadata"]["name"]
        ]
    for mounts in (code["containers"][0]["volumeMounts"], launcher["volumeMounts"]):
        assert [one["mountPath"] for one in mounts] == [variable["value"]]
    assert launcher["envVars"] == [f"{variable['name']}={variable['value']}"]


def test_dagster_reaches_the_server_of_the_code() -> None:
    _, deployment, service = manifests()
    values = yaml.safe_load((FOLDER / "values.yaml").read_text())
    (server,) = values["dagsterWebserver"]["workspace"]["servers"]

    assert server["host"] == service["metadata"]["name"]
    assert server["port"] == service["spec"]["ports"][0]["port"]
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]


# Dagster itself uses names that it previews.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
@pytest.mark.filterwarnings("ignore::dagster.PreviewWarning")
class TestSteps:
    """The pods of steps, as `k8s_job_executor` makes them of the tags of a node."""

    @pytest.fixture(scope="class")
    @staticmethod
    def definitions() -> dg.Definitions:
        pytest.importorskip("dagster_k8s", reason="there is no dagster-k8s (pip install it)")
        found: dg.Definitions = runpy.run_path(str(FOLDER / "definitions.py"))["defs"]
        return found

    def job_of(self, definitions: dg.Definitions, node: str) -> dict[str, Any]:
        """Return the Kubernetes job for the step of a node."""
        import kubernetes
        from dagster_k8s.job import (
            DagsterK8sJobConfig,
            construct_dagster_k8s_job,
            get_user_defined_k8s_config,
        )

        launcher = yaml.safe_load((FOLDER / "values.yaml").read_text())["runLauncher"]["config"]
        shared = launcher["k8sRunLauncher"]
        image = manifests()[1]["spec"]["template"]["spec"]["containers"][0]["image"]
        config = DagsterK8sJobConfig(
            job_image=image,
            dagster_home="/opt/dagster/dagster_home",
            instance_config_map="dagster-instance",
            env_vars=shared["envVars"],
            volumes=shared["volumes"],
            volume_mounts=shared["volumeMounts"],
            resources=shared["resources"],
        )
        op = definitions.resolve_assets_def(["docs", node]).op
        made = construct_dagster_k8s_job(
            config,
            ["dagster", "api", "execute_step", json.dumps({"step": node})],
            f"dagster-step-{node}",
            user_defined_k8s_config=get_user_defined_k8s_config(op.tags),
        )
        found: dict[str, Any] = kubernetes.client.ApiClient().sanitize_for_serialization(made)
        return found

    @pytest.mark.parametrize("node", ["clean", "embedded"])
    def test_the_job_of_a_step_is_valid_and_has_the_volume_of_the_results(
        self, definitions: dg.Definitions, node: str
    ) -> None:
        kubernetes_validate = pytest.importorskip("kubernetes_validate")

        job = self.job_of(definitions, node)
        kubernetes_validate.validate(job, "1.30", strict=True)

        claim = manifests()[0]["metadata"]["name"]
        pod = job["spec"]["template"]["spec"]
        assert claim in str(pod["volumes"])
        assert {"name": "results", "mountPath": "/results"} in pod["containers"][0]["volumeMounts"]
        assert job["spec"]["backoffLimit"] == 0  # Dagster repeats a step, not Kubernetes

    def test_only_the_node_that_needs_a_gpu_has_one(self, definitions: dg.Definitions) -> None:
        plain, gpu = (
            self.job_of(definitions, node)["spec"]["template"]["spec"]
            for node in ("clean", "embedded")
        )
        assert gpu["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
        assert gpu["nodeSelector"]
        assert gpu["tolerations"][0]["key"] == "nvidia.com/gpu"
        assert "gpu" not in str(plain["containers"][0]["resources"])
        assert plain["terminationGracePeriodSeconds"] == gpu["terminationGracePeriodSeconds"] == 60

    def test_the_job_of_the_pipeline_has_the_executor_and_the_location_has_none(
        self, definitions: dg.Definitions
    ) -> None:
        assert definitions.resolve_job_def("docs_pipeline").executor_def.name == "kubernetes"
        assert definitions.executor is None
        dg.Definitions.validate_loadable(definitions)

    def test_a_wrong_field_of_a_pod_is_told_by_dagster_when_the_step_starts(self) -> None:
        pytest.importorskip("dagster_k8s", reason="there is no dagster-k8s (pip install it)")
        from dagster_k8s.job import get_user_defined_k8s_config

        tags = {"dagster-k8s/config": json.dumps({"container_confg": {}})}
        with pytest.raises(dg.DagsterInvalidConfigError, match="container_confg"):
            get_user_defined_k8s_config(tags)
