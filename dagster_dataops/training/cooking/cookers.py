"""`Cooker` and `cooker`: functions that make a record of a crude sample."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, overload

from dagster_dataops.errors import CookerError
from dagster_dataops.operators.options.signature import nearest, parameters_of, takes_any
from dagster_dataops.streams.core.item_failures import SkipItem

CookFunction: TypeAlias = Callable[..., Any]
F = TypeVar("F", bound=CookFunction)

_NEEDS: Final = "__dataops_cooker_needs__"
PRIMARY: Final = "primary"
CACHE: Final = "cache"


class SkipSample(SkipItem):
    """Raised by a cooker, or by a step of a task encoder, to leave a sample out.

    It is counted as dropped, not as failed. With several ranks, a step after the sharding mark that
    raises it needs ``on_error="skip"`` or ``"quarantine"``. With ``"raise"`` the loader takes all
    ranks to be at the same position, and those that left samples out are not.
    """


class Needs(NamedTuple):
    """Whether a cooker takes a cache pool as ``cache``, and its own dataset as ``primary``."""

    cache: bool = False
    primary: bool = False


@overload
def cooker(function: F, /) -> F: ...


@overload
def cooker(*, need_cache: bool = False, need_primary: bool = False) -> Callable[[F], F]: ...


def cooker(function: Any = None, /, *, need_cache: bool = False, need_primary: bool = False) -> Any:
    """Declare the additional arguments of a cooker; without any, the decorator is not needed.

    Args:
        function: The cooker, where the decorator is used without parentheses.
        need_cache: Whether it takes a cache pool as its parameter ``cache``.
        need_primary: Whether it takes its own dataset as its parameter ``primary``: a file store
            in which ``.txt`` is the part of the same sample.
    """

    def decorated(cook: Any) -> Any:
        setattr(cook, _NEEDS, Needs(cache=need_cache, primary=need_primary))
        return cook

    return decorated if function is None else decorated(function)


@dataclass(frozen=True)
class Cooker:
    """A cooking function, and the subflavors of the samples that it is used for.

    Attributes:
        cook: Called with a crude sample, and with the file stores by name. It returns a record, a
            list of records, or ``[]`` for none.
        has_subflavors: Subflavors that the data must have, with equal values; ``None`` for all
            data.
    """

    cook: CookFunction
    has_subflavors: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check that the cooker is a function."""
        function: object = self.cook
        if not callable(function):
            reason = f"a cooker is a function, not a {type(function).__name__}"
            raise CookerError(reason)

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(getattr(self.cook, "__name__", None) or type(self.cook).__name__)

    @property
    def needs(self) -> Needs:
        """The additional arguments of the function, as declared by `cooker`."""
        needs = getattr(self.cook, _NEEDS, None)
        return needs if isinstance(needs, Needs) else Needs()

    def is_match(self, subflavors: Mapping[str, Any] | None) -> bool:
        """Return whether the cooker takes data of these subflavors."""
        labels = subflavors or {}
        wanted = self.has_subflavors or {}
        return all(
            key in labels and type(labels[key]) is type(value) and labels[key] == value
            for key, value in wanted.items()
        )

    def check(self, aux: Iterable[str], place: str) -> None:
        """Check that the function takes exactly the stores that there are.

        Raises:
            CookerError: A parameter or a store is left over.
        """
        stores = list(aux)
        reserved = sorted({PRIMARY, CACHE}.intersection(stores))
        if reserved:
            reason = f"{place}: no auxiliary store can be called {reserved[0]!r}; rename it"
            raise CookerError(reason)
        known = [*stores, *([PRIMARY] if self.needs.primary else [])]
        known += [CACHE] if self.needs.cache else []
        parameters = parameters_of(self.cook)
        if not parameters:
            raise CookerError(f"cooker {self.name} takes no sample: its first parameter is missing")
        first = parameters[0]
        if first.kind is first.POSITIONAL_OR_KEYWORD and first.name in known:
            reason = (
                f"cooker {self.name} takes the sample as {first.name!r}, and {place} has an "
                "auxiliary store of this name; rename one of them"
            )
            raise CookerError(reason)
        named = [
            parameter
            for parameter in parameters[1:]
            if parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
        ]
        names = [parameter.name for parameter in named]
        for parameter in named:
            if parameter.name not in known and parameter.default is parameter.empty:
                raise CookerError(self._left_over(parameter.name, known, place))
        for name in known:
            if name not in names and not takes_any(parameters):
                near = nearest(name, names)
                hint = f"; did you mean its parameter {near!r}?" if near else "."
                reason = (
                    f"cooker {self.name} has no parameter {name!r}, which {place} gives it{hint}"
                )
                raise CookerError(f"{reason} Add the parameter, or **stores")

    def _left_over(self, name: str, known: list[str], place: str) -> str:
        near = nearest(name, known)
        hint = f"; did you mean {near!r}?" if near else "."
        has = ", ".join(known) or "none"
        advice = ""
        if name in {PRIMARY, CACHE}:
            advice = f"; decorate the cooker with @cooker(need_{name}=True)"
        return (
            f"cooker {self.name} has a parameter {name!r}, and {place} has no such store{hint} "
            f"Its stores: {has}{advice}"
        )


Cookers: TypeAlias = Cooker | CookFunction | Iterable[Cooker | CookFunction]


def listed_cookers(cookers: Cookers) -> tuple[Cooker, ...]:
    """Return cookers in order; a function takes all data.

    Raises:
        CookerError: One is not a function.
    """
    several = cookers if isinstance(cookers, Iterable) and not callable(cookers) else [cookers]
    return tuple(entry if isinstance(entry, Cooker) else Cooker(entry) for entry in several)


def chosen_cooker(
    cookers: Iterable[Cooker],
    subflavors: Mapping[str, Any] | None,
    aux: Iterable[str] = (),
    place: str = "the dataset",
) -> Cooker:
    """Return the first cooker that takes data of these subflavors, with these auxiliary stores.

    ``place`` is the dataset in messages, such as ``./a (train of mix.yaml:6)``.
    """
    offered = list(cookers)
    if not offered:
        reason = "there is no cooker; give at least one function of a crude sample"
        raise CookerError(f"{place}: {reason}")
    for entry in offered:
        if entry.is_match(subflavors):
            entry.check(aux, place)
            return entry
    has = _shown(subflavors) or "no subflavors"
    wanted = "; ".join(f"{entry.name}: {_shown(entry.has_subflavors)}" for entry in offered)
    raise CookerError(f"no cooker takes {place}: it has {has}; the cookers want {wanted}")


def _shown(subflavors: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in (subflavors or {}).items())
