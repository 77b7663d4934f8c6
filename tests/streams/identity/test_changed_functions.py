"""Tests of dagster_dataops.streams.identity.changed_functions."""

from dagster_dataops.streams.identity.changed_functions import ChangedFunctions


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
