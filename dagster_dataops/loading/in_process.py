"""`InProcessReadingService`: read in the process of the loader."""

from typing_extensions import override

from dagster_dataops.loading.reading_service import ReadingServiceInterface
from dagster_dataops.streams.operations import Operations


class InProcessReadingService(ReadingServiceInterface):
    """Read in the process of the loader, as loaders without a service do."""

    @override
    def initialize(self, datapipe: Operations) -> Operations:
        return datapipe
