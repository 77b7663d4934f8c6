"""The files of datasets that Megatron-Energon prepares: read, and written."""
