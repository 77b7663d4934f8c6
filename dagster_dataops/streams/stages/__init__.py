"""The stages of a stream that work item by item in the reading thread, one module a stage."""
