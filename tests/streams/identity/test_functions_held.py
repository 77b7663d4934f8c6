"""The objects that the functions of a stream hold, and functions that changed."""

import functools
import threading

from dagster_dataops.streams.identity.held_objects import HeldObjects, is_large
from dagster_dataops.streams.identity.stream_identity import ChangedFunctions


class _Holding:
    def __init__(self, held):
        self.held = held

    def __call__(self, item):
        return item

    def method(self, item):
        return item


class _Buffer:
    nbytes = 1 << 30


VALUES = list(range(400_000))


def _named(item):
    return VALUES[item]


def _empty_cell():
    def function(item):
        return later

    if VALUES:
        return function
    later = 1
    return later


def test_a_function_that_holds_much_is_large_wherever_it_holds_it():
    held = {str(number): number for number in range(200_000)}
    for function in (
        _Holding(held),
        _Holding([[held]]),
        _Holding("x" * (80 << 20)),
        _Holding(_Buffer()),
        _Holding(held).method,
        functools.partial(_Holding(None), given=held),
        lambda item: held[item],
        _named,
    ):
        assert is_large({"fn": function})
        assert is_large({"functions": (abs, function)})


def test_other_functions_are_not_large():
    inner = []
    inner.append(inner)
    for function in (abs, len, lambda item: inner, _Holding(threading.Lock()), _empty_cell()):
        assert not is_large({"fn": function})


def test_functions_without_an_original_stay_the_same_objects():
    used, original = _Holding(1), _Holding(2)
    objects = HeldObjects()
    objects.count_as(used, original)
    other = _Holding(3)
    for function in (abs, other, other.method, functools.partial(other, 1), lambda item: other):
        found = objects.originals({"fn": function, "functions": (abs, function)})
        assert found["fn"] is function or found["fn"] == function
        assert found["functions"] == (abs, function)
    assert objects.originals({"fn": used})["fn"] is original
    assert objects.originals({"fn": used.method})["fn"].__self__ is original
    partial = objects.originals({"fn": functools.partial(abs, used, key=used)})["fn"]
    assert (partial.args, partial.keywords) == ((original,), {"key": original})

    def closure(item, *, more=1):
        return used

    made = objects.originals({"fn": closure})["fn"]
    assert made(0) is original
    assert made.__kwdefaults__ == {"more": 1}
    assert closure(0) is used


def test_a_closure_over_itself_and_over_an_empty_cell_stays():
    def recursive(item):
        return recursive

    objects = HeldObjects()
    objects.count_as(object(), None)
    empty = _empty_cell()
    assert objects.originals({"a": recursive, "b": empty}) == {"a": recursive, "b": empty}


class _Function:
    def __call__(self, item):
        return item

    def method(self, item):
        return item


class _WithoutReferences:
    __slots__ = ()

    def __call__(self, item):
        return item


def test_functions_that_a_stream_has_changed_have_their_digest_from_before():
    changes, function = ChangedFunctions(), _Function()
    changes.note({"functions": (function, abs)}, "before", "after")
    assert changes.before({"functions": (function, abs)}, "after") == "before"
    assert changes.before({"functions": (function, abs)}, "changed since") == "changed since"
    assert changes.before({"functions": (function,)}, "after") == "after"
    assert changes.before({"functions": (_Function(), abs)}, "after") == "after"


def test_a_bound_method_is_that_of_its_object():
    changes, holder = ChangedFunctions(), _Function()
    changes.note({"fn": holder.method}, "before", "after")
    assert changes.before({"fn": holder.method}, "after") == "before"
    assert changes.before({"fn": _Function().method}, "after") == "after"


def test_a_change_is_forgotten_with_its_functions():
    changes = ChangedFunctions()
    functions = [_Function() for _ in range(3)]
    for one in functions:
        changes.note({"fn": one}, "before", "after")
    del functions, one
    assert not changes._changes


def test_only_the_last_functions_without_weak_references_are_remembered():
    changes, functions = ChangedFunctions(), [_WithoutReferences() for _ in range(17)]
    for function in functions:
        changes.note({"fn": function}, "before", "after")
    assert changes.before({"fn": functions[0]}, "after") == "after"
    assert {changes.before({"fn": one}, "after") for one in functions[1:]} == {"before"}
