"""ResumePolicy: which finished records of earlier runs a run may use."""

from enum import Enum


class ResumePolicy(Enum):
    """When a run uses finished records of an unfinished run.

    Attributes:
        NEVER: Start afresh. Existing checkpoints are kept until the new result is published.
        AUTO: Resume where operator, options, code and input are the same.
        ACROSS_CODE: Resume even where the operator's code has changed. Records that the old code
            finished are kept as they are.
        FAILED_RECORDS: Retry the failed records of the published result alone.
    """

    NEVER = "never"
    AUTO = "auto"
    ACROSS_CODE = "across_code"
    FAILED_RECORDS = "failed_records"
