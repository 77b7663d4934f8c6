"""Calls over HTTP or through an object: the client, its limits, errors by status."""
