"""The finished records of earlier runs that a run may use: ResumePolicy, ChosenRecords."""

from enum import Enum

from dagster_dataops.foundation.frozen import frozen


class ResumePolicy(Enum):
    """Which finished records of an unfinished run are used.

    Attributes:
        NEVER: Start afresh. Existing checkpoints are kept until the new result is published.
        AUTO: Resume if operator, options, code and input are the same.
        ACROSS_CODE: Resume even if the operator's code has changed. Records that the old code
            finished are kept as they are.
        FAILED_RECORDS: Retry only the failed records of the published result.
    """

    NEVER = "never"
    AUTO = "auto"
    ACROSS_CODE = "across_code"
    FAILED_RECORDS = "failed_records"


@frozen(kw_only=False)
class ChosenRecords:
    """Process again only the records of the published result that fulfil a condition.

    Attributes:
        records: The condition, see `record_condition`.
        node: The name of the node whose records they are; empty for every node. It counts in plain
            Python, where the setting is that of all nodes.
    """

    records: str
    node: str = ""


def chosen_only(policy: "ResumePolicy | ChosenRecords") -> bool:
    """Return whether a run processes only records of a published result that were asked for."""
    return policy is ResumePolicy.FAILED_RECORDS or isinstance(policy, ChosenRecords)
