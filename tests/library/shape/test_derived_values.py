import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, MissingColumnError


def test_a_template_is_filled() -> None:
    operator = data.shape.Template("{a}: {b:.1f} {{{m[x]}}} {n}{a:>{w}}")
    record = {"a": "é", "b": 1.25, "m": {"x": [1]}, "n": None, "w": 3}
    assert operator([record])[0]["text"] == "é: 1.2 {[1]}   é"
    with pytest.raises(MissingColumnError, match="'a'"):
        operator.forward({})
    with pytest.raises(ValueError, match="does not fit"):
        operator.forward({**record, "b": "text"})
    with pytest.raises(ValueError, match="does not fit"):
        operator.forward({**record, "m": {}})


@pytest.mark.parametrize("template", ["{}", "{0}", "{a.b}", "{a[b].c}", "{a", "{a!x}", "{a:{b.c}}"])
def test_templates_without_a_column_are_refused(template: str) -> None:
    if template == "{a!x}":
        with pytest.raises(ValueError, match="does not fit"):
            data.shape.Template(template).forward({"a": 1})
    else:
        with pytest.raises(DefinitionError):
            data.shape.Template(template)


def test_the_hash_of_a_text_is_that_of_its_bytes() -> None:
    found = data.shape.Hash()([{"text": "é"}])[0]["hash"]
    assert found == xxhash.xxh3_128_hexdigest("é".encode())


VALUES = st.sampled_from(["a", "1", 1, None, True, ["a"], {"b": 1, "a": 2}, {"a": 2, "b": 1}])


@given(
    st.dictionaries(st.sampled_from("xyz"), VALUES), st.dictionaries(st.sampled_from("xyz"), VALUES)
)
def test_hashes_are_equal_if_the_values_are(left, right) -> None:
    hashed = data.shape.Hash(["x", "y"], "h")
    identified = data.shape.AddId()

    def text(record, keys) -> str:
        return repr([(key, sorted_(record[key])) for key in keys if key in record])

    def sorted_(value):
        return sorted(value.items()) if isinstance(value, dict) else value

    hashes = [hashed.forward(dict(record))["h"] for record in (left, right)]
    assert (hashes[0] == hashes[1]) == (text(left, "xy") == text(right, "xy"))
    ids = [identified.forward(dict(record))["id"] for record in (left, right)]
    assert (ids[0] == ids[1]) == (text(left, "xyz") == text(right, "xyz"))


def test_ids_do_not_depend_on_other_records() -> None:
    records = [{"text": "a"}, {"text": "b"}, {"text": "a"}]
    ids = [record["id"] for record in data.shape.AddId(prefix="x-")(records)]
    assert ids[0] == ids[2] != ids[1]
    assert data.shape.AddId(prefix="x-")(records[1:])[0]["id"] == ids[1]
    assert len(ids[0]) == 34


def test_ids_may_be_numbers() -> None:
    operator = data.shape.AddId(by="index", prefix="doc-", overwrite=True)
    found = operator([{"id": "old"}, {}])
    assert [record["id"] for record in found] == ["doc-0000000000", "doc-0000000001"]


def test_an_id_stays() -> None:
    assert data.shape.AddId().forward({"id": 7}) == {"id": 7}
    assert data.shape.AddId(overwrite=True).forward({"id": 7})["id"] != 7
    of_text = data.shape.AddId(input_key="text")
    assert of_text.forward({"text": "a", "n": 1})["id"] == of_text.forward({"text": "a"})["id"]
    with pytest.raises(DefinitionError, match="by"):
        data.shape.AddId(by="number")
