from dagster_dataops import data


def change(text, **options):
    return data.text.RemoveMarkdown(**options).forward({"text": text})["text"]


def test_marks_go_and_their_text_stays():
    text = "# A *title*\n\nSee [this](http://a.b) and `code`,\n**bold** snake_case_name.\n\n> quote"

    assert change(text) == "A title\n\nSee this and code,\nbold snake_case_name.\n\nquote"


def test_blocks_keep_their_text():
    text = "- a\n- b\n\n1. c\n\n```py\nx = 1\n```\n\n---\n\n![alt](c.png)\n\n<b>html</b>"

    assert change(text) == "a\nb\n\nc\n\nx = 1\n\nalt\n\n<b>html</b>"


def test_the_marks_of_nemo_curator_go_on_request():
    assert change("a_b_c **d** *e* [f](g) [h](i", compat=True) == "abc d e g [h](i"
    assert change("[a] (b) ](c)", compat=True) == "c"
