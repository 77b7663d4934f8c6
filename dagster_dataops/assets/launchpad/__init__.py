"""The run configuration of operators as the launchpad shows and checks it."""
