import sys

import pytest

from dagster_dataops.errors import DefinitionError, MissingExtraError
from dagster_dataops.library.user_patterns import applied, compiled


@pytest.mark.parametrize("engine", ["re", "re2"])
def test_a_pattern_is_compiled_by_its_engine(engine) -> None:
    pattern = compiled("a(b)", engine)

    assert applied(pattern.sub, r"\1", "xab") == "xb"
    with pytest.raises(DefinitionError, match=r"pattern '\(' is no regular expression"):
        compiled("(", engine)


def test_a_text_that_re2_cannot_read_is_an_error() -> None:
    assert applied(compiled("a").search, "a\ud800")
    with pytest.raises(ValueError, match="lone surrogate at character 1, which re2 cannot read"):
        applied(compiled("a", "re2").search, "a\ud800")


def test_the_extra_of_re2_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)

    with pytest.raises(MissingExtraError, match=r"filters\.Regex with engine='re2'.*re2"):
        compiled("a", "re2", "filters.Regex")
