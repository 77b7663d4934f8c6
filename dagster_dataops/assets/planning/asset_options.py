"""AssetOptions: the options that every function which makes assets of a pipeline takes."""

import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from keyword import iskeyword
from typing import Annotated, Any, Final, TypeAlias, TypedDict, cast

import dagster as dg
from typing_extensions import Doc

from dagster_dataops.assets.checks.error_rate import ErrorRates
from dagster_dataops.assets.planning.run_tags import step_tags
from dagster_dataops.assets.planning.translator import DataOpsTranslator
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.places.opening import PLAIN
from dagster_dataops.foundation.places.root import Root

DATAOPS: Final = "dataops"  # the default key of the resource
_TAKEN: Final = ("context", "config", "io_manager")  # names that Dagster uses in steps
Condition: TypeAlias = dg.AutomationCondition[dg.AssetKey]


class AssetOptions(TypedDict, total=False):
    """Options of the assets of a pipeline; every one may be left out.

    ``help()`` of each function that takes these options shows the descriptions. ``dg`` shows them
    for the fields of a defs.yaml.
    """

    resource: Annotated[
        DataOpsResource | None,
        Doc(
            "Root folder of the results, and defaults of the operators. Pipelines whose "
            "definitions are merged need equal resources, or another `resource_key` each."
        ),
    ]
    resource_key: Annotated[
        str,
        Doc(
            "Resource key of `resource`, by default `dataops`. The IO manager has the key "
            "`<resource_key>_io`. Pipelines with different roots or clients can be in one code "
            "location if each has its own key."
        ),
    ]
    dagster_dataops_translator: Annotated[
        DataOpsTranslator | None,
        Doc("Maps operators to asset keys, groups and descriptions."),
    ]
    partitions_def: Annotated[
        dg.PartitionsDefinition | None,
        Doc(
            "Partitions of every asset. A source path must then contain `{partition}`: one file "
            "per partition. A source function takes the partition key. An upstream asset must "
            "have partitions too."
        ),
    ]
    unpartitioned: Annotated[
        Collection[str],
        Doc(
            "Nodes that take all partitions at once, in order. Nodes whose inputs are all "
            "unpartitioned are unpartitioned too. They have a separate job, "
            "`<pipeline>_pipeline_unpartitioned`. A partitioned node that takes their result "
            "reads all of it."
        ),
    ]
    allow_missing_partitions: Annotated[
        bool,
        Doc(
            "Let unpartitioned nodes skip missing partitions. By default a missing partition is "
            "an error that names it."
        ),
    ]
    backfill_policy: Annotated[
        dg.BackfillPolicy | None,
        Doc(
            "Runs of a backfill. By default one run per partition; with "
            "`dg.BackfillPolicy.single_run()` one run takes the partitions one after the other."
        ),
    ]
    automation_condition: Annotated[
        Condition | Mapping[str, Condition] | None,
        Doc(
            "Condition that materializes an asset automatically, such as "
            "`dg.AutomationCondition.eager()`: one for all assets, or a dict by node."
        ),
    ]
    columns: Annotated[
        Mapping[str, str | Mapping[str, str]],
        Doc(
            "What columns are, such as `{'text': 'The text of the page.'}`, for the column schema "
            "on the pages of assets; a dict by node, such as `{'graded': {'score': '...'}}`, for "
            "the results of one node and of those after it, and by `source` for the source. By "
            "default the docstrings of operators say it, such as that of `output_key`. A column "
            "that no record has is a warning of the run."
        ),
    ]
    freshness_policy: Annotated[dg.FreshnessPolicy | None, Doc("Freshness policy of every asset.")]
    retry_policy: Annotated[
        dg.RetryPolicy | None,
        Doc("Retry policy of every step. A retry resumes where the failed attempt stopped."),
    ]
    max_error_rate: Annotated[
        ErrorRates,
        Doc(
            "Share of an operator's records that may fail before its check `failed_records` "
            "fails: a number in [0, 1] or an `ErrorRateCheck`, for all operators or a dict by "
            "node. By default any failed record is a warning. If more than half of the records "
            "failed, it is an error that blocks downstream assets, unless the `ErrorRateCheck` "
            "has a severity. `None`: no check."
        ),
    ]
    stream_name: Annotated[
        str | None,
        Doc(
            "Asset name of a source that is a stream: a URL, a compressed file, a function that "
            "returns a stream. By default the name of its function, its reader or its first file."
        ),
    ]
    workers: Annotated[
        int,
        Doc(
            "Number of processes that read a source that is a stream. The result has the same "
            "bytes for every number, and a killed run resumes with any other. By default 0: the "
            "process of the run alone."
        ),
    ]


def root_of(options: AssetOptions) -> Root | None:
    """Return the folder of all results if the definitions name it, else ``None``."""
    resource = options.get("resource")
    return None if resource is None else resource.defined_root


def form_of(options: AssetOptions) -> str:
    """Return the form that the definitions set for files of results; plain jsonl by default."""
    resource = options.get("resource")
    return PLAIN if resource is None else resource.defined_form


def resource_key_of(options: AssetOptions) -> str:
    """Return the key of the resource.

    Raises:
        ConfigurationError: It cannot be the key of a resource.
    """
    key = options.get("resource_key", DATAOPS)
    is_taken = key in _TAKEN or key.startswith("input_")
    if not (key.isascii() and key.isidentifier()) or iskeyword(key) or is_taken:
        allowed = (
            "a name of ASCII letters, digits and underscores that starts neither with a digit nor "
            f"with input_, which inputs of steps have, and is none of {', '.join(_TAKEN)}"
        )
        raise ConfigurationError("resource_key", key, allowed)
    return key


def step_tags_of(options: AssetOptions, node: str) -> dict[str, Any] | None:
    """Return the tags of a node's step from ``op_tags``, if the options have them by node.

    Raises:
        ConfigurationError: They are no tags of Dagster.
    """
    tags: Any = cast("Mapping[str, Any]", options).get("op_tags") or {}
    return None if node not in tags else step_tags(f"op_tags.{node}", tags[node])


def automation_condition_of(options: AssetOptions, node: str) -> Condition | None:
    """Return the automation condition of a node."""
    condition = options.get("automation_condition")
    return condition.get(node) if isinstance(condition, Mapping) else condition


@contextmanager
def backfills(options: AssetOptions) -> Iterator[dg.BackfillPolicy | None]:
    """Yield the backfill policy to pass to ``dg.asset``, ``None`` without partitions.

    Dagster marks that argument as beta for ``dg.asset``, but not for ``dg.multi_asset``. The
    context suppresses the warning.
    """
    policy = options.get("backfill_policy")
    if options.get("partitions_def") is None or policy is None:
        yield None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        yield policy
