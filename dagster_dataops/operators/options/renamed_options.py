"""Options that were renamed: a former name is accepted with a warning, and counts in fingerprints.

    class Shorten(data_register.new_group("demo")):
        renamed_options = {"max_len": "max_chars"}

The digest of the options has the first of the former names, so that a rename makes nothing stale.
"""

import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from dagster_dataops.errors import OperatorDefinitionError, OperatorOptionError
from dagster_dataops.operators.options.signature import OptionSpec

RENAMED: Final = "renamed_options"  # the attribute of a class
_LAST_RELEASE: Final = "0.4"  # without the former names of the library's options
_PACKAGE: Final = __name__.partition(".")[0]
_LOG: Final = logging.getLogger(_PACKAGE)


def with_former_names(
    operator: str, options: Sequence[OptionSpec], names: object, inherited: Mapping[str, str]
) -> tuple[OptionSpec, ...]:
    """Return options with their former names.

    Args:
        operator: The operator's name, for errors.
        options: Its options.
        names: Its present names by the former ones, the oldest first.
        inherited: The same of its base classes; what does not concern its options does not count.

    Raises:
        OperatorDefinitionError: ``names`` is malformed, or does not fit the options.
    """
    known = [option.name for option in options]
    checked = _checked(operator, known, names)
    fitting = {
        old: new for old, new in inherited.items() if new in known and old not in known
    } | checked
    return tuple(
        option._replace(former=tuple(old for old, new in fitting.items() if new == option.name))
        for option in options
    )


def _checked(operator: str, known: Sequence[str], names: object) -> dict[str, str]:
    if not isinstance(names, Mapping) or not all(
        isinstance(name, str) for name in [*names, *names.values()]
    ):
        reason = f"its {RENAMED} is {names!r}; it must be a dict of present names by former names"
        raise OperatorDefinitionError(operator, reason)
    for old, new in names.items():
        if new not in known:
            reason = f"its {RENAMED} has {new!r}, which is no option; it has {', '.join(known)}"
            raise OperatorDefinitionError(operator, reason)
        if old in known or not old.isidentifier() or old.startswith("_"):
            said = "is still one" if old in known else "cannot be the name of one"
            raise OperatorDefinitionError(operator, f"its {RENAMED} has {old!r}, which {said}")
    return dict(names)


def renamed_in(classes: Sequence[type]) -> dict[str, str]:
    """Return the present names of options by former ones that classes have, the first before."""
    names: dict[str, str] = {}
    for cls in reversed(classes):
        names |= vars(cls).get(RENAMED, {})
    return names


def present_names(options: Iterable[OptionSpec]) -> dict[str, str]:
    """Return the present names of options by their former ones."""
    return {old: option.name for option in options for old in option.former}


def by_present_names(
    operator: str,
    options: Iterable[OptionSpec],
    arguments: Mapping[str, Any],
    *,
    shipped: bool,
    place: Callable[[str], str] = lambda _: "",
) -> dict[str, Any]:
    """Return the given options by their present names; warn of each former name.

    Args:
        operator: The operator's name, for errors and warnings.
        options: Its options.
        arguments: The given options, by name.
        shipped: Whether it is of this package, so that the warning names a release.
        place: Returns where an option was given, outside of Python.

    Raises:
        OperatorOptionError: Two names of one option were given.
    """
    present = present_names(options)
    if present.keys().isdisjoint(arguments):
        return dict(arguments)
    renamed: dict[str, Any] = {}
    names: dict[str, str] = {}
    for name, value in arguments.items():
        new = present.get(name, name)
        if new in names:
            raise given_twice(operator, *sorted((name, names[new]), key=present.__contains__))
        names[new], renamed[new] = name, value
    for old in present.keys() & arguments.keys():
        warn_of_former(operator, old, present[old], shipped=shipped, place=place(old))
    return renamed


def given_twice(operator: str, new: str, old: str) -> OperatorOptionError:
    """Return the error of an option that was given by two of its names."""
    reason = f"was given, and {old!r}, too, which is a former name of the same option; give one"
    return OperatorOptionError(operator, new, reason)


def warn_of_former(operator: str, old: str, new: str, *, shipped: bool, place: str = "") -> None:
    """Warn that an option was given by a former name.

    Args:
        operator: The operator's name.
        old: The former name.
        new: The present name.
        shipped: Whether the operator is of this package.
        place: Where it was given, outside of Python; it is logged, too.
    """
    ends = f"; {_LAST_RELEASE} will not know the former name" if shipped else ""
    text = f"Operator {operator}: option {old!r} is named {new!r} now{ends}"
    if place:
        text = f"{place}: {text}"
        _LOG.warning("%s", text)
    warnings.warn(text, DeprecationWarning, stacklevel=_frames_of_package() + 1)


def _frames_of_package() -> int:
    """Return the number of frames from `warn_of_former` to the first caller outside the package."""
    frame, number = sys._getframe(1), 0  # noqa: SLF001 - as `warnings` does
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, number = frame.f_back, number + 1
    return number
