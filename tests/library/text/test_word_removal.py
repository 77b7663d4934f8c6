from dagster_dataops import data


def change(operator, text):
    return operator.forward({"text": text})["text"]


def test_words_of_another_length_go():
    operator = data.text.RemoveLongWords(min_word_length=2, max_word_length=5)

    assert change(operator, "a bb  ccccc\tdddddd\n\n(eeeee)!") == "bb ccccc\n(eeeee)!"
    assert change(data.text.RemoveLongWords(), "a \t\n b") == "a\nb"


def test_words_with_parts_of_links_go():
    operator = data.text.RemoveWordsContaining()

    assert change(operator, "a http://b c.com .com (//) d\n\n e") == "a .com (//) d\ne"
    assert change(data.text.RemoveWordsContaining(substrings=["x"]), "xa b\tx\thttp") == "b\thttp"
