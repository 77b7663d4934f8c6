"""One record: call the operator, retry, encode the outcome, group records in spans."""
