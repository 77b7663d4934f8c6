"""``stateless(restore_seeds=True)``: random numbers that depend on the record alone."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dagster_dataops import (
    DefaultTaskEncoder,
    get_savable_loader,
    get_train_dataset,
    restore_record,
    stateless,
)
from tests.training.cooking.mixtures import cook_text, dataset


class Augmenting(DefaultTaskEncoder):
    cookers = (cook_text,)

    @stateless(restore_seeds=True)
    def encode_sample(self, sample):
        return {**sample, "r": random.random(), "n": float(np.random.rand())}


@stateless(restore_seeds=True)
def draws(records):
    for _ in records:
        yield random.random()


@pytest.fixture
def data(tmp_path):
    folder = dataset(tmp_path / "a", 6)
    return get_train_dataset(folder, task_encoder=Augmenting(), repeat=False)


def test_a_record_gets_the_same_random_numbers_each_time(data):
    records = list(data)

    assert len({record["r"] for record in records}) == 6
    assert len({record["n"] for record in records}) == 6
    assert list(data) == records
    assert list(get_savable_loader(data, num_workers=1)) == records
    assert [restore_record(data, one["__restore_key__"]) for one in records] == records


def test_the_random_numbers_outside_are_not_changed(data):
    random.seed(5)
    np.random.seed(5)
    wanted = random.random(), np.random.rand()

    random.seed(5)
    np.random.seed(5)
    list(data)
    assert (random.random(), np.random.rand()) == wanted


def test_an_error_sets_the_states_back():
    @stateless(restore_seeds=True)
    def fails(record):
        raise ValueError(record)

    state = random.getstate()
    with pytest.raises(ValueError, match="x"):
        fails({"x": 1})
    assert random.getstate() == state


def test_a_generator_and_a_list_of_records_are_seeded():
    records = [{"__restore_key__": ["d", "s", str(n)]} for n in range(2)]

    assert list(draws(records)) == list(draws(records))
    assert list(draws(records)) != list(draws(records[::-1]))


def test_records_without_keys_are_told_apart_by_their_values():
    draw = stateless(restore_seeds=True)(lambda record: random.random())

    assert draw({"a": 1}) == draw({"a": 1}) != draw({"a": 2})
    assert draw({"a": np.zeros(2)}) == draw({"a": np.zeros(2)}) != draw({"a": np.ones(2)})


def test_threads_do_not_disturb_one_another():
    draw = stateless(restore_seeds=True)(lambda record: [random.random() for _ in range(200)])
    records = [{"__restore_key__": [str(n)]} for n in range(40)]
    wanted = [draw(record) for record in records]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(draw, records)) == wanted


def test_a_coroutine_function_is_refused():
    async def encode(record):
        return record

    with pytest.raises(TypeError, match="no coroutine function"):
        stateless(restore_seeds=True)(encode)
    assert stateless(encode) is encode
