"""Run one operator over one dataset: runners by kind of operator, backends by concurrency mode."""
