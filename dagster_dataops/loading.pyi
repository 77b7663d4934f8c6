# The public names, and their modules; `loading.py` imports each on first use.

from dagster_dataops import graphs as graphs
from dagster_dataops.streams.torch_loader import pin_memory as pin_memory
from dagster_dataops.streams.torch_loader import to_device as to_device
from dagster_dataops.streams.torch_loader import torch_dataset as torch_dataset
from dagster_dataops.training.loading.distributed import (
    DistributedReadingService as DistributedReadingService,
)
from dagster_dataops.training.loading.loader import DataLoader2 as DataLoader2
from dagster_dataops.training.loading.multi_processing import (
    MultiProcessingReadingService as MultiProcessingReadingService,
)
from dagster_dataops.training.loading.rank_states import merged_states as merged_states
from dagster_dataops.training.loading.reading_service import (
    CheckpointableReadingServiceInterface as CheckpointableReadingServiceInterface,
)
from dagster_dataops.training.loading.reading_service import (
    InProcessReadingService as InProcessReadingService,
)
from dagster_dataops.training.loading.reading_service import (
    ReadingServiceInterface as ReadingServiceInterface,
)
from dagster_dataops.training.loading.seed_generator import SeedGenerator as SeedGenerator
from dagster_dataops.training.loading.sequential import (
    SequentialReadingService as SequentialReadingService,
)
