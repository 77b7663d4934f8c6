import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError

TEXT = """Before

# *One*
a

## Two `x`

```
# no heading
```
> # no heading either

Three
=====
### Four
b
## Five"""


def sections(text, **options):
    records = data.markdown.Sections(**options).forward({"text": text})
    return [(record["headings"], record["text"]) for record in records]


def test_a_text_is_split_at_its_headings():
    assert sections(TEXT) == [
        ([], "Before"),
        (["One"], "# *One*\na"),
        (["One", "Two x"], "## Two `x`\n\n```\n# no heading\n```\n> # no heading either"),
        (["Three"], "Three\n====="),
        (["Three", "Four"], "### Four\nb"),
        (["Three", "Five"], "## Five"),
    ]


def test_levels_and_headings_are_chosen():
    assert sections(TEXT, max_level=1, keep_heading=False)[2] == (["Three"], "### Four\nb\n## Five")
    assert sections("# A\r\nb\r# C\n", keep_heading=False) == [(["A"], "b"), (["C"], "")]
    with pytest.raises(DefinitionError, match="max_level"):
        data.markdown.Sections(max_level=7)


def test_sections_are_copies_of_the_record():
    records = data.markdown.Sections(output_key="part")([{"text": "# A\n# B", "id": 1}])

    assert records == [
        {"text": "# A\n# B", "id": 1, "part": "# A", "headings": ["A"], "section": 0},
        {"text": "# A\n# B", "id": 1, "part": "# B", "headings": ["B"], "section": 1},
    ]
    with pytest.raises(DefinitionError, match="may select several"):
        data.markdown.Sections("parts[*]")
    (nested,) = data.markdown.Sections("a.b").forward({"a": {"b": "x"}})
    assert nested == {"a": {"b": "x"}, "headings": [], "section": 0}


def test_a_text_without_headings_is_one_section():
    assert sections("a\n\nb\n") == [([], "a\n\nb")]
    assert sections(" \n") == []


@pytest.mark.cpu_timeout(120)
@pytest.mark.slow
def test_hostile_texts_take_linear_time():
    operator = data.markdown.Sections()
    for text in (
        "# a\n" * 5_000,
        "# " + "[" * 20_000,
        "> " * 20_000,
        "- " * 20_000,
        "===\n" * 9_000,
    ):
        operator.forward({"text": text})
