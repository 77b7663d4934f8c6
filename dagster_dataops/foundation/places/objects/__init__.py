"""A bucket of S3, GCS or Azure: its client, the check of a store, and the texts of its errors."""
