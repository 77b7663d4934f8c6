"""Tests of dagster_dataops.foundation.hashing.tensors."""

import json
import sys

import pytest

from dagster_dataops.foundation.hashing.code import code_digest
from dagster_dataops.foundation.hashing.tensors import tensor_content
from dagster_dataops.foundation.hashing.values import digest

torch = pytest.importorskip("torch", reason="needs the extra 'torch'")
pytestmark = pytest.mark.filterwarnings("ignore:Failed to initialize NumPy")  # not needed by torch


def _module():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))


MADE = {
    "numbers": lambda: torch.arange(5),
    "a part": lambda: torch.arange(10)[::2],
    "other types": lambda: [torch.ones(2, dtype=one) for one in (torch.bfloat16, torch.bool)],
    "a complex number": lambda: torch.ones(2, dtype=torch.complex64).conj(),
    "nothing": lambda: torch.empty(0),
    "a scalar": lambda: torch.tensor(1.5),
    "a sparse tensor": lambda: torch.eye(3).to_sparse(),
    "without elements": lambda: torch.empty(3, device="meta"),
    "a parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "a module": _module,
    "a generator": torch.Generator,
}


def _holder(held):
    return lambda: held


def _digests():
    return {
        name: [digest(make()), digest(make(), code_digest), code_digest(_holder(make()))]
        for name, make in MADE.items()
    }


@pytest.mark.parametrize("name", MADE)
def test_equal_tensors_have_one_digest(name):
    make = MADE[name]
    kept = [make(), make()]  # in other places of the memory
    for functions in (str, code_digest):
        assert len({digest(one, functions) for one in kept}) == 1


@pytest.mark.parametrize(
    "other",
    [
        lambda: torch.arange(1, 6),
        lambda: torch.arange(5, dtype=torch.int32),
        lambda: torch.arange(5).reshape(5, 1),
        lambda: torch.arange(5.0).requires_grad_(),
        lambda: torch.arange(5.0),
        lambda: torch.nn.Parameter(torch.arange(5.0)),
        lambda: torch.arange(5).to_sparse(),
        lambda: torch.empty(5, dtype=torch.int64, device="meta"),
    ],
)
def test_other_tensors_have_another_digest(other):
    for functions in (str, code_digest):
        assert digest(other(), functions) != digest(torch.arange(5), functions)


def test_another_process_has_the_same_digests(run_python):
    code = f"import json; from {__name__} import _digests; print(json.dumps(_digests()))"
    assert json.loads(run_python(code)) == _digests()


def test_other_objects_are_none_without_torch(monkeypatch):
    assert tensor_content([1]) is None
    monkeypatch.setitem(sys.modules, "torch", None)
    assert tensor_content([1]) is None
