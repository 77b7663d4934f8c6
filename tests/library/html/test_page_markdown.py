import pytest
from markdownify import markdownify

from dagster_dataops import data


def test_a_page_becomes_markdown():
    operator = data.html.ToMarkdown()
    page = "<h2>A</h2><p>b <b>c</b> <a href='d'>e</a></p><ul><li>f</li></ul>"

    assert operator([{"html": page}])[0]["text"] == "A\n-\n\nb **c** [e](d)\n\n* f"
    assert operator.forward({"html": "notes.txt"})["text"] == "notes.txt"


def test_many_paragraphs_without_an_end_are_converted():
    text = data.html.ToMarkdown().forward({"html": "<p>a" * 2_000})["text"]

    assert text.split("\n\n") == ["a"] * 2_000


@pytest.mark.parametrize(
    "page",
    [
        "<ul><li>a<ul><li>b<ol><li>c</li></ol></li></ul></li><li>d</li></ul>",
        "<table><tr><th>a<th>b</tr><tr><td>1|2<td>c<br>d</tr></table>",
        "<a href='x y' title='t'>l</a><a href=''>e</a><a>n</a>",
        "<pre><code class='language-py'>def f():\n    return '&lt;b>'\n</code></pre>",
        "<p>no code follows<pre>",
        "<p>&lt;b&gt; &amp; &nbsp;x&hellip; at the end &amp",
        "<!-- c -->a<!-- d -->b",
        "<!-- c -->" * 200 + "<p>a<li>b",
        "a<br>b<br/><br>",
        "<script>alert(1)</script><style>p{}</style>x<noscript>n</noscript>",
        "  no tags &amp; ",
        "   ",
        "<p>the comment does not end<!-- c",
    ],
)
def test_pages_become_what_markdownify_makes_of_them(page):
    assert data.html.ToMarkdown().forward({"html": page})["text"] == markdownify(page)


def test_comments_without_an_end_take_linear_time():
    text = data.html.ToMarkdown().forward({"html": "<!-- a > " * 50_000})["text"]

    assert len(text) < 1_000_000


def test_an_xml_declaration_and_other_instructions_are_no_text() -> None:
    page = "<?xml version='1.0'?>\n<html><body><?php echo 1 ?><p>a < b ? c</p></body></html>"
    assert data.html.ToMarkdown().forward({"html": page})["text"] == "a < b ? c"
