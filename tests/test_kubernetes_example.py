"""Tests that the manifests of `examples/kubernetes` are valid, and fit together."""

from pathlib import Path
from typing import Any

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
