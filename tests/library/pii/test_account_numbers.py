import pytest

from dagster_dataops.library.pii.account_numbers import cards, ibans, phones


def found(find, text):
    return [text[start:end] for start, end in find(text)]


def test_cards_have_a_check_digit():
    text = "4111 1111 1111 1111, 5500005555555559; 4111111111111112 and 3782-822463-10005"

    assert found(cards, text) == ["4111 1111 1111 1111", "5500005555555559", "3782-822463-10005"]


def test_account_numbers_have_a_length_and_check_digits():
    text = "DE89 3704 0044 0532 0130 00. GB82WEST12345698765432 GB82WEST12345698765433 ZZ00123456"

    assert found(ibans, text) == ["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432"]
    assert found(ibans, "NL91ABNA0417164300 is it") == ["NL91ABNA0417164300"]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Call +1 (555) 010-9999 or +44 20 7946 0958.", ["+1 (555) 010-9999", "+44 20 7946 0958"]),
        ("(555) 010-9999, 555-010-9999", ["(555) 010-9999", "555-010-9999"]),
        ("2024-01-02 12.5 +12 345", []),
    ],
)
def test_phone_numbers_are_found(text, numbers):
    assert found(phones, text) == numbers
