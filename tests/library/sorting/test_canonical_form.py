from dagster_dataops.library.sorting.canonical_form import canonical


def test_the_order_of_keys_does_not_count_and_any_text_has_a_form() -> None:
    assert canonical({"b": [1, {"d": "é", "c": None}], "a": 1.5}) == (
        '{"a":1.5,"b":[1,{"c":null,"d":"é"}]}'.encode()
    )
    assert canonical("a\ud800") != canonical("a\ud801")
