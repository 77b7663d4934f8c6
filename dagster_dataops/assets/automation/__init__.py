"""What launches runs: jobs, schedules, sensors, and the retry of failed records."""
