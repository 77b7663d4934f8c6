"""Crude samples and cookers: make records of samples that were not decoded yet."""
