"""Object stores: S3, GCS, Azure, and servers compatible with S3."""
