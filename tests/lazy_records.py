"""Records with lazy files, as task encoders read them from a result."""

from dagster_dataops.training.filestores.lazy_files import with_lazy_files

__all__ = ["with_lazy_files"]
