import pytest

from dagster_dataops import data


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Bullets", "• a\n - b\n\n  ● c\nd", 0.5),
        ("Ellipsis", "a...\nb Read More\nc […] \n\nd", 0.75),
        ("Punctuation", 'a.\nb"\nc,\n\nd', 0.5),
        ("BoilerPlateString", "a\n\nOur Terms of Use\n\nb\n\nWe use cookies", 0.5),
        ("BoilerPlateString", "Lorem ipsum", 1.0),
        ("BoilerPlateString", "Necessary cookies are absolutely essential for cakes.", 0.0),
        ("BoilerPlateString", "", 0.0),
    ],
)
def test_shares_of_lines(name, text, expected):
    tagged = getattr(data.filters, name)(mode="tag").forward({"text": text})

    assert [*tagged["stats"].values()] == [expected]


@pytest.mark.parametrize("name", ["Bullets", "Ellipsis", "Punctuation"])
def test_a_text_without_lines_is_empty(name):
    assert getattr(data.filters, name)().forward({"text": " \n"}).reason == "empty"


@pytest.mark.parametrize(("length", "expected"), [(34, 1.0), (33, 0.0), (35, 0.0)])
def test_a_long_notice_is_recognized_by_its_beginning_length_and_end(length, expected):
    beginning = "If you continue to browse this site without changing your cookie"
    operator = data.filters.BoilerPlateString(mode="tag")
    tagged = operator.forward({"text": f"x {beginning}{'s' * length}AcceptRead More y"})

    assert tagged["stats"] == {"boilerplate_ratio": expected}
