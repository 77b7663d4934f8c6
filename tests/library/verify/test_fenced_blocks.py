from dagster_dataops.library.verify.fenced_blocks import fenced_blocks


def test_blocks_of_a_language_come_before_others() -> None:
    text = "a\n```python title\nx = 1\n```\n\n~~~\nb\n~~~\n````Py\n```\ny\n````\n"
    assert fenced_blocks(text, ("python", "py")) == [
        (2, "python", "x = 1\n"),
        (9, "py", "```\ny\n"),
    ]
    assert fenced_blocks(text, ("json",)) == [(6, "", "b\n")]


def test_a_block_may_be_open_or_missing() -> None:
    assert fenced_blocks("```\na", ()) == [(1, "", "a")]
    assert fenced_blocks("```", ()) == [(0, "", "")]
    assert fenced_blocks("a ``` b", ()) is None
    assert fenced_blocks("", ()) is None


def test_hostile_fences_are_read_quickly() -> None:
    for text in ("```" + " " * 100_000 + "`", "```\n" * 50_000, "`" * 100_000 + "x`"):
        fenced_blocks(text, ("python",))
