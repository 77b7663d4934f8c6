from dagster_dataops import data


def test_a_page_becomes_markdown():
    operator = data.html.ToMarkdown()
    page = "<h2>A</h2><p>b <b>c</b> <a href='d'>e</a></p><ul><li>f</li></ul>"

    assert operator([{"html": page}])[0]["text"] == "A\n-\n\nb **c** [e](d)\n\n* f"
    assert operator.forward({"html": "notes.txt"})["text"] == "notes.txt"


def test_many_paragraphs_without_an_end_are_converted():
    text = data.html.ToMarkdown().forward({"html": "<p>a" * 2_000})["text"]

    assert text.split("\n\n") == ["a"] * 2_000
