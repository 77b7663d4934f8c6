"""counted: numbers with their units in messages."""


def counted(number: int, units: str) -> str:
    """Return a number with its unit.

    Args:
        number: How many there are.
        units: The plural of the unit, which ends in "s"; for 1 the "s" is cut off.
    """
    return f"{number:,} {units.removesuffix('s') if number == 1 else units}"
