import pytest

from dagster_dataops import data


@pytest.mark.parametrize(
    ("text", "reason", "error"),
    [
        ("x = 1\n", None, None),
        ("Here:\n```python\nx = 1\n```\nand\n```\nnot code at all\n```", None, None),
        ("Here:\n```\nx = 1\n```", None, None),
        ("Here:\n```python\nx = 1\n```\n```py\n\nx = (\n```", "syntax_error", "line 7: "),
        ("```json\n{}\n```", "empty", "empty"),
        (
            "a\n```python title\nx = 1\n```\n~~~\nno code\n~~~\n````Py\n```\n````\n",
            "syntax_error",
            "line 9: ",
        ),
        ("```\nx =", "syntax_error", "line 2: "),
        ("```", "empty", "empty"),
        ("a ``` b", "syntax_error", "line 1: "),
        (" \n", "empty", "empty"),
        (None, "empty", "empty"),
        ("x = ", "syntax_error", "line 1: invalid syntax"),
        ("a\x00b", "syntax_error", "line 1: "),
        ("x = '\ud800'", "syntax_error", "line 1: "),
        ("x = '\\d'", None, None),
        ("1 is 1", None, None),
        ("(" * 1000, "syntax_error", "line 1: "),
        ("-" * 100_000 + "1", "too_deep", "line 1: nested too deep"),
        ("x" + ".x" * 100_000, "too_deep", "line 1: nested too deep"),
        ("x = 1" + "0" * 10_000, "syntax_error", "line 1: "),
        ("#" * 1_000_001, "too_long", "line 1: longer than 1,000,000 bytes"),
    ],
)
def test_code_is_checked(text: str | None, reason: str | None, error: str | None) -> None:
    found = data.verify.Python().forward({"text": text})
    assert found["valid"] is (reason is None)
    assert found["error"] == error or found["error"].startswith(error)
    dropped = data.verify.Python(mode="drop").forward({"text": text})
    assert dropped == {"text": text} if reason is None else dropped.reason == reason


def test_code_is_never_run() -> None:
    text = "raise SystemExit(open('created', 'w'))"
    assert data.verify.Python(mode="both")([{"text": text}])[0]["valid"]


def test_threads_may_check_at_a_time() -> None:
    operator = data.verify.Python(_concurrency_mode="thread", _max_workers=4)
    assert all(record["valid"] for record in operator([{"text": "x = '\\d'"}] * 200))


def test_hostile_fences_are_read_quickly() -> None:
    for text in ("```" + " " * 100_000 + "`", "```\n" * 50_000, "`" * 100_000 + "x`"):
        data.verify.Python().forward({"text": text})
