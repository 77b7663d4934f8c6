"""``map`` with random numbers that depend only on the seed, the stage and the item's number."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.selectors.selector import Selector
from dagster_dataops.streams.core.element_numbers import NumberedStage
from dagster_dataops.streams.core.seeds import derive_seed, seeded_random
from dagster_dataops.streams.core.stage import ReadContext


@dataclass(eq=False)
class RandomMap(NumberedStage):
    """Apply functions of an item, or of its selected parts, and of a ``random.Random``.

    Each item gets a generator of its own, shared by its functions and parts. Its seed is derived
    from the seed of the stream, the path of the stage and the number of the item.
    """

    name: ClassVar[str] = "map"
    saved: ClassVar[tuple[str, ...]] = ("failed", "begun")
    functions: tuple[Callable[..., Any], ...]
    selector: Selector | None

    @override
    def options(self) -> dict[str, Any]:
        return {**super().options(), "random": True}

    @override
    def seed_in(self, root: int) -> int:
        """Return the seed of the stage in a stream of seed ``root``."""
        return derive_seed(root, self.path)

    @override
    def begin(self, context: ReadContext) -> None:
        super().begin(context)
        self._seed = self.seed_in(context.seed)

    @override
    def items(self) -> Iterator[Any]:
        functions, selector = self.functions, self.selector
        for item in self.source.items():
            random = seeded_random(self._seed, *self.next_number())

            def function(part: Any) -> Any:
                for one in functions:
                    part = one(part, random)  # noqa: B023 - called in this round alone
                return part

            try:
                result = function(item) if selector is None else selector.map(function, item)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                self.counter.settle(item, error)
            else:
                yield result
