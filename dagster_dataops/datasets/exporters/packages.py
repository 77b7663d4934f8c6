"""Check that optional packages are installed, without importing them."""

from importlib.util import find_spec

from dagster_dataops.errors import MissingExtraError


def require(package: str, feature: str, extra: str) -> None:
    """Check that a package is installed; else the error names the feature and the extra."""
    try:
        is_there = find_spec(package) is not None
    except ValueError:  # None in sys.modules
        is_there = False
    if not is_there:
        raise MissingExtraError(feature, extra)
