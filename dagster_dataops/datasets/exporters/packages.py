"""Check that optional packages are installed, without importing them."""

from importlib.util import find_spec

from dagster_dataops.errors import MissingExtraError


def require(package: str, feature: str, extra: str) -> None:
    """Check that a package is installed.

    Args:
        package: The package.
        feature: The feature that needs it, for the error.
        extra: The extra that installs it.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        found = find_spec(package) is not None
    except ValueError:  # None in sys.modules
        found = False
    if not found:
        raise MissingExtraError(feature, extra)
