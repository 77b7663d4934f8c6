"""The ``input_key``/``output_key`` convention of operators that work on fields."""

from typing import TypeAlias

from dagster_dataops.errors import DefinitionError

Keys: TypeAlias = str | list[str]


def key_pairs(input_key: Keys, output_key: Keys | None) -> list[tuple[str, str]]:
    """Return (read, written) pairs of keys.

    Args:
        input_key: One key, or several.
        output_key: As many, in the same order; ``None`` writes where it was read.

    Raises:
        DefinitionError: They are not as many.
    """
    read = [input_key] if isinstance(input_key, str) else list(input_key)
    if output_key is None:
        return [(key, key) for key in read]
    written = [output_key] if isinstance(output_key, str) else list(output_key)
    if len(read) != len(written):
        msg = f"input_key names {len(read)} keys ({read}), output_key {len(written)} ({written})"
        raise DefinitionError(msg)
    return list(zip(read, written, strict=True))
