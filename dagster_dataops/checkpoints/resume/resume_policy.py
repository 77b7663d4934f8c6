"""ResumePolicy: the finished records of earlier runs that a run may use."""

from enum import Enum


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
