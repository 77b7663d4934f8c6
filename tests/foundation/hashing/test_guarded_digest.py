"""Tests of guarded_digest."""

import time

from dagster_dataops.foundation.hashing.guarded_digest import guarded_digest

_GUESSES = 3
_SECONDS = 0.02  # for a guess, on a fast machine


def test_equal_values_have_equal_digests_and_other_names_other_ones() -> None:
    assert guarded_digest("password", "'a") == guarded_digest("password", "'a")
    assert guarded_digest("password", "'a") != guarded_digest("password", "'b")
    assert guarded_digest("password", "'a") != guarded_digest("salt", "'a")


def test_the_digest_is_the_same_in_every_version() -> None:
    assert (
        guarded_digest("password", "'a")
        == "824fb33f70220e0d90b4013739b62ca248db067b988a4d6097b20d950c79e144"
    )


def test_each_guess_is_expensive_and_a_known_value_is_not() -> None:
    began = time.process_time()
    for number in range(_GUESSES):
        guarded_digest("password", f"'guess {number}")
    assert time.process_time() - began > _GUESSES * _SECONDS
    began = time.process_time()
    for _ in range(1000):
        guarded_digest("password", "'guess 1")
    assert time.process_time() - began < _GUESSES * _SECONDS
