import pytest

from dagster_dataops import data
from tests.library.pii.replaced_texts import marked


@pytest.mark.parametrize(
    ("kind", "text", "numbers"),
    [
        (
            "card",
            "4111 1111 1111 1111, 5500005555555559; 4111111111111112 and 3782-822463-10005",
            ["4111 1111 1111 1111", "5500005555555559", "3782-822463-10005"],
        ),
        (
            "iban",
            "DE89 3704 0044 0532 0130 00. GB82WEST12345698765432 GB82WEST12345698765433 ZZ00123456",
            ["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432"],
        ),
        ("iban", "NL91ABNA0417164300 is it", ["NL91ABNA0417164300"]),
        (
            "phone",
            "Call +1 (555) 010-9999 or +44 20 7946 0958.",
            ["+1 (555) 010-9999", "+44 20 7946 0958"],
        ),
        ("phone", "(555) 010-9999, 555-010-9999", ["(555) 010-9999", "555-010-9999"]),
        ("phone", "2024-01-02 12.5 +12 345", []),
    ],
)
def test_numbers_with_a_fitting_length_and_check_digits_are_found(kind, text, numbers):
    operator = data.pii.Replace(**{f"{kind}s": True, f"{kind}_replacement": "_"})

    assert operator.forward({"text": text})["text"] == marked(text, numbers)
