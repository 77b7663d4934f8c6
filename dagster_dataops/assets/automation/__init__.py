"""Jobs, schedules and sensors of a pipeline: everything that launches runs."""
