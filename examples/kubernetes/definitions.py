r"""A pipeline whose steps are pods of Kubernetes: one of them on a node with a GPU.

    pip install 'dagster-dataops[objectstore]' dagster-k8s

This file is the module ``definitions`` of the image in manifests.yaml. The root of the results is
the environment variable DATAOPS_DATA_PROCESS_PATH: a volume that all pods share, as here, or
``s3://bucket/results``. With a bucket the pods need no volume.
"""

import os

import dagster as dg
from dagster_k8s import k8s_job_executor

from dagster_dataops import DataOpsResource, build_definitions, data, data_register, pipeline

SOURCE = os.environ.get("DOCS_SOURCE", "/results/inbox/{partition}.jsonl")
GPU = {
    "dagster-k8s/config": {
        "container_config": {"resources": {"limits": {"nvidia.com/gpu": 1}}},
        "pod_spec_config": {
            "node_selector": {"cloud.google.com/gke-accelerator": "nvidia-l4"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "termination_grace_period_seconds": 60,
        },
    }
}
SMALL = {
    "dagster-k8s/config": {
        "container_config": {"resources": {"requests": {"cpu": "2", "memory": "4Gi"}}},
        "pod_spec_config": {"termination_grace_period_seconds": 60},
    }
}


@data_register("data.kubernetes", _concurrency_mode="thread", _max_workers=4)
def embed(record: dict):
    """Stand for a model on the GPU: return the length of the text as its vector."""
    return record | {"vector": [len(record["text"])]}


with pipeline("docs") as ppl:
    ppl.clean = data.text.Normalize(input_key="text")
    ppl.embedded = embed()

defs = build_definitions(
    ppl,
    source=SOURCE,
    partitions_def=dg.StaticPartitionsDefinition([f"shard-{number}" for number in range(8)]),
    resource=DataOpsResource(),
    executor=k8s_job_executor.configured({"max_concurrent": 4}, name="kubernetes"),
    op_tags={"clean": SMALL, "embedded": GPU},
    retry_policy=dg.RetryPolicy(max_retries=3, delay=10),
)
