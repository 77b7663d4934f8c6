"""Runners: one module for each kind of operator, registered in `runner`."""
