"""One operator over one dataset: four ways to run it, one way to settle what comes of it."""
