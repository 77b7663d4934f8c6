"""Locations as users know them, for messages and rows of error files."""

from dagster_dataops.foundation.places.bucket import COPIES, BucketFile, Location
from dagster_dataops.foundation.places.mounted_buckets import bucket_of


def shown_place(location: Location) -> str:
    """Return a location as users know it: the URL of an object, or of a file in a working copy."""
    if isinstance(location, BucketFile):
        return str(location)
    found = bucket_of(location)
    if found is None:
        return str(location)
    return f"{found[0].url}/{found[1].removeprefix(f'{COPIES}/')}"
