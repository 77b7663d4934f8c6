"""Jobs of a pipeline: one for all assets, or two if only some of the assets are partitioned."""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, TypedDict, get_args

import dagster as dg
from typing_extensions import Doc

from dagster_dataops.assets.metadata.metadata_keys import REFRESH_TAG, RETRY_TAG
from dagster_dataops.assets.planning.asset_plan import SourceAsset
from dagster_dataops.assets.planning.run_tags import run_tags
from dagster_dataops.errors import ConfigurationError

# Dagster exports no name for the result of define_asset_job.
AssetJob: TypeAlias = Any
JobKind: TypeAlias = Literal["pipeline", "refresh", "retry", "preview", "estimate"]
JOB_KINDS: Final[tuple[JobKind, ...]] = get_args(JobKind)
DEFAULT_JOBS: Final[tuple[JobKind, ...]] = ("pipeline",)


class JobOptions(TypedDict, total=False):
    """Options of the jobs of a pipeline; every one may be left out."""

    jobs: Annotated[
        Collection[JobKind],
        Doc(
            "Jobs of the pipeline; by default `pipeline` alone, which materializes everything. "
            "`refresh` materializes what is stale, `retry` calls operators only for failed "
            "records, `preview` previews all operators, `estimate` estimates the cost of models. "
            "A schedule or a sensor has the job `pipeline` in any case. Any launch does what "
            "`refresh` and `retry` do if it has the tag `dagster_dataops/refresh: true` or "
            "`dagster_dataops/retry_failed_records: true`."
        ),
    ]
    job_tags: Annotated[
        Mapping[str, str],
        Doc("Tags of the pipeline's jobs and of all their runs, such as `{'team': 'search'}`."),
    ]
    job_hooks: Annotated[
        AbstractSet[dg.HookDefinition],
        Doc("Hooks of the steps of the pipeline's jobs that materialize assets."),
    ]
    job_owners: Annotated[
        Sequence[str],
        Doc(
            "Owners of the pipeline's jobs that materialize assets: `team:search`, `me@here.org`. "
            "Owners of jobs are a beta feature of Dagster, which warns of that."
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """What the jobs of a pipeline have in common."""

    executor: dg.ExecutorDefinition
    tags: Mapping[str, str] | None = None
    hooks: AbstractSet[dg.HookDefinition] | None = None
    owners: Sequence[str] | None = None

    @classmethod
    def of(cls, executor: dg.ExecutorDefinition, options: JobOptions) -> Self:
        """Return the settings from the options of a pipeline.

        Raises:
            ConfigurationError: A tag, a hook or an owner is none.
        """
        hooks, owners = options.get("job_hooks"), options.get("job_owners")
        if hooks and not all(isinstance(hook, dg.HookDefinition) for hook in hooks):
            raise ConfigurationError("job_hooks", hooks, "a set of hooks of Dagster")
        if owners and (isinstance(owners, str) or not all(map(_is_owner, owners))):
            allowed = "a list of mail addresses, and of teams as 'team:<name>'"
            raise ConfigurationError("job_owners", owners, allowed)
        tags = run_tags("job_tags", options.get("job_tags"))
        return cls(executor=executor, tags=tags, hooks=hooks, owners=owners)


def _is_owner(owner: object) -> bool:
    """Return whether Dagster takes a text as an owner."""
    try:
        dg.AssetSpec("owned", owners=[owner])  # type: ignore[list-item]
    except Exception:  # noqa: BLE001 - also Dagster's CheckError, which has no public name
        return False
    return True


def job_kinds(options: JobOptions) -> Collection[JobKind]:
    """Return the kinds of jobs to make.

    Raises:
        ConfigurationError: One is unknown.
    """
    kinds = options.get("jobs", DEFAULT_JOBS)
    unknown = [kind for kind in kinds if kind not in JOB_KINDS]
    if isinstance(kinds, str) or unknown:
        raise ConfigurationError("jobs", kinds, f"a list with some of {', '.join(JOB_KINDS)}")
    return kinds


def pipeline_jobs(
    name: str,
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
    settings: JobSettings,
    source_checks: Sequence[dg.AssetCheckKey] = (),
    **keywords: Any,
) -> list[AssetJob]:
    """Return the jobs that materialize a pipeline; the job of partitioned assets is the first.

    Unpartitioned assets of a partitioned pipeline have their own job. In a run of one partition
    they would find the other partitions missing, or they would be materialized once per partition.

    ``assets`` may be some of those of the pipeline. The first job also runs ``source_checks``.
    ``keywords`` are further arguments of ``dg.define_asset_job``.
    """
    keywords |= {
        "executor_def": settings.executor,
        "tags": {**(settings.tags or {}), **keywords.get("tags", {})} or None,
        "hooks": settings.hooks,
        "owners": settings.owners,
    }
    partitioned: list[dg.AssetKey] = []
    rest: list[dg.AssetKey] = []
    for asset in assets:
        if isinstance(asset, dg.AssetsDefinition):
            for key in asset.keys:
                whole = asset.specs_by_key[key].partitions_def is None
                (rest if whole else partitioned).append(key)
    if partitioned and rest:
        whole = _job(f"{name}_unpartitioned", rest, (), keywords)
        return [_job(name, partitioned, source_checks, keywords), whole]
    return [_job(name, partitioned or rest, source_checks, keywords)]


def _job(
    name: str,
    keys: Sequence[dg.AssetKey],
    checks: Sequence[dg.AssetCheckKey],
    keywords: Mapping[str, Any],
) -> AssetJob:
    selection: dg.AssetSelection = dg.AssetSelection.assets(*keys)
    if checks:
        selection |= dg.AssetSelection.checks(*checks)
    return dg.define_asset_job(name, selection=selection, **keywords)


def refresh_jobs(
    title: str,
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
    settings: JobSettings,
) -> list[AssetJob]:
    """Return the job ``<title>_refresh``, and another for unpartitioned assets.

    It materializes stale assets and everything downstream of them. Its run covers the whole
    pipeline: Dagster selects assets before the run, and a stale asset further downstream shows only
    during the run. A step whose result already has the operator, options, code and input of the
    step keeps the result and reports the same data version.
    """
    return pipeline_jobs(
        f"{title}_refresh",
        assets,
        settings,
        description=(
            "Materializes every result that is missing or whose operator, options, code or input "
            "have changed, and all results downstream of it. Other results are kept, without a "
            "call of their operators. A source function is called only if its code has changed."
        ),
        tags={REFRESH_TAG: "true"},
    )


def retry_jobs(
    pipeline: str,
    origin: SourceAsset,
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
    settings: JobSettings,
) -> list[AssetJob]:
    """Return the job ``<pipeline>_retry_failed_records``, and one for unpartitioned assets.

    Its steps retry the failed records of every result and keep results without failed records. An
    operator downstream of a changed result processes the whole new input, or with
    ``reuse_outcomes`` the records that are new in it.

    If the pipeline writes its source, the result of that is kept.
    """
    return pipeline_jobs(
        f"{pipeline or 'dataops'}_retry_failed_records",
        assets[1:] if isinstance(origin.definition, dg.AssetsDefinition) else assets,
        settings,
        description=(
            "Retries the failed records of every operator's result and inserts their new results "
            "at the same positions. Results without failed records are kept. Operators "
            "downstream of a changed result process all its records again, or only the new "
            "records if they reuse outcomes."
        ),
        tags={RETRY_TAG: "true"},
    )
