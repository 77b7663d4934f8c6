"""`NumberSummary`: mean, deviation and quantiles of a stream of numbers in little memory."""

from math import asin, pi, sin, sqrt
from typing import Final

_EXACT: Final = 10_000  # numbers that are all kept
_COMPRESSION: Final = 400  # about twice the number of centroids that are kept


class NumberSummary:
    """Mean, deviation and quantiles of numbers: those of more than 10,000 by a merging t-digest.

    Quantiles of a t-digest are most exact near the smallest and the largest number. The result
    depends only on the numbers and their order.

    Attributes:
        count: How many numbers were added.
        mean: Their mean.
    """

    def __init__(self) -> None:
        self.count, self.mean, self._squares = 0, 0.0, 0.0
        self._added: list[float] = []
        self._centroids: list[tuple[float, float]] = []  # mean and weight, by mean

    def add(self, number: float) -> None:
        """Add a finite number."""
        self.count += 1
        difference = number - self.mean
        self.mean += difference / self.count
        self._squares += difference * (number - self.mean)
        self._added.append(number)
        if len(self._added) > _EXACT:
            self._compress()

    def deviation(self) -> float:
        """Return the standard deviation, as of a sample."""
        return sqrt(max(0.0, self._squares) / (self.count - 1)) if self.count > 1 else 0.0

    def quantile(self, share: float) -> float:
        """Return the quantile of a share from 0 to 1, interpolated between two numbers."""
        centroids = self.centroids()
        wanted = share * (sum(weight for _, weight in centroids) - 1)
        before, below = centroids[0][0], -1.0
        position = 0.0
        for mean, weight in centroids:
            middle = position + (weight - 1) / 2
            if middle >= wanted:
                if below < 0 or middle == below:
                    return mean
                return before + (mean - before) * (wanted - below) / (middle - below)
            before, below = mean, middle
            position += weight
        return centroids[-1][0]

    def centroids(self) -> list[tuple[float, float]]:
        """Return means and weights by mean: each number alone, while there are at most 10,000."""
        return sorted([*self._centroids, *((number, 1.0) for number in self._added)])

    def _compress(self) -> None:
        """Join neighbours as far as the scale function of the t-digest allows."""
        ordered = self.centroids()
        total = sum(weight for _, weight in ordered)
        joined: list[tuple[float, float]] = []
        mean, weight = ordered[0]
        before, limit = 0.0, _limit(0.0)
        for other, more in ordered[1:]:
            if (before + weight + more) / total <= limit:
                weight += more
                mean += (other - mean) * more / weight
            else:
                joined.append((mean, weight))
                before += weight
                limit = _limit(before / total)
                mean, weight = other, more
        self._centroids, self._added = [*joined, (mean, weight)], []


def _limit(share: float) -> float:
    """Return the share at which a centroid that begins at ``share`` must end."""
    scaled = _COMPRESSION / (2 * pi) * asin(2 * share - 1) + 1
    if scaled >= _COMPRESSION / 4:
        return 1.0
    return (sin(scaled * 2 * pi / _COMPRESSION) + 1) / 2
