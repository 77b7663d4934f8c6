"""The run configuration of operators: the fields that the launchpad shows and checks."""
