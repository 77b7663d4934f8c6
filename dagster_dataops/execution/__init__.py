"""Run one operator over one dataset: runners by kind of operator, workplaces by mode."""
