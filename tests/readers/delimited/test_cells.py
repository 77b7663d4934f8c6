"""Texts of cells as values."""

from dagster_dataops import readers


def test_cells_have_types(written):
    path = written('i,f,b,j,s\n1,2.5,Yes,"{""a"":[1]}",x\n,,,,\n-3,1e3,0,null,NA\n')
    types = {"i": int, "f": "float", "b": bool, "j": "json", "s": str}
    assert list(readers.read_delimited(path, types=types, missing=["NA"])) == [
        {"i": 1, "f": 2.5, "b": True, "j": {"a": [1]}, "s": "x"},
        {"i": None, "f": None, "b": None, "j": None, "s": ""},
        {"i": -3, "f": 1000.0, "b": False, "j": None, "s": None},
    ]
    assert list(readers.read_delimited(written("a,b\n1,2\n"), types=int)) == [{"a": 1, "b": 2}]
