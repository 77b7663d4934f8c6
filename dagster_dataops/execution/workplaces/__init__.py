"""Execution backends, one module for each concurrency mode; `backend` registers them."""
