"""Ranges of options, declared once: types for the signatures of operators.

    def __init__(self, *, max_ratio: Fraction | None = 0.25, n: PositiveInt = 2): ...

Options outside of their range are refused when the operator is constructed. The launchpad and the
JSON schema of an option have its limits; signatures and ``help()`` show the plain type.
"""

from typing import Annotated, TypeAlias

from annotated_types import Ge, Interval

AtLeastZero: TypeAlias = Annotated[int, Ge(0)]
"""A count, 0 or more."""
PositiveInt: TypeAlias = Annotated[int, Ge(1)]
"""A count, 1 or more."""
AtLeastZeroFloat: TypeAlias = Annotated[float, Ge(0)]
"""A mean or a quotient, 0 or more."""
Fraction: TypeAlias = Annotated[float, Interval(ge=0, le=1)]
"""A share or a probability, 0 to 1."""
Percentile: TypeAlias = Annotated[float, Interval(ge=0, le=100)]
"""A rank among values: the percentage of them that are smaller, 0 to 100."""
