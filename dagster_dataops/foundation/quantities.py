"""counted, percentage: numbers with their units in messages."""


def counted(number: int, units: str) -> str:
    """Return a number with its unit.

    Args:
        number: How many there are.
        units: The plural of the unit, which ends in "s"; for 1 the "s" is cut off.
    """
    return f"{number:,} {units.removesuffix('s') if number == 1 else units}"


def percentage(share: float) -> str:
    """Return a share in percent, such as ``66.7 %``.

    It has one decimal, more if it is below 0.1 %, and is 0 only for none and 100 only for all.

    Args:
        share: The share, 0 to 1.
    """
    percent = 100 * share
    if 0 < percent < 0.1:
        return f"{percent:.1g} %"
    return f"{min(percent, 99.9) if percent < 100 else percent:.1f} %"
