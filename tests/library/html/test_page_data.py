from dagster_dataops import data


def test_metadata_are_found():
    page = """<!doctype html><html class="x" lang="de-AT"><head><title>Der Hafen</title>
    <meta name="author" content="Ada Lovelace"><link rel="canonical" href="https://a.org/hafen">
    <meta property="article:published_time" content="2020-03-04"></head><body><p>Text</p></body>"""

    assert data.html.Metadata()([{"html": page}])[0]["metadata"] == {
        "title": "Der Hafen",
        "author": "Ada Lovelace",
        "date": "2020-03-04",
        "lang": "de-AT",
        "url": "https://a.org/hafen",
    }
    assert set(data.html.Metadata().forward({"html": ""})["metadata"].values()) == {None}


def test_tables_are_found():
    page = """<table><thead><tr><th>A</th><th>B</th></tr></thead>
    <tr><td>1 <b>2</b>\n 3</td><td><table><tr><td>in</td></tr></table>out</td></tr><tr></tr></table>
    <td>no table</td>"""

    assert data.html.Tables()([{"html": page}])[0]["tables"] == [
        [["A", "B"], ["1 2 3", "out"]],
        [["in"]],
    ]
    assert data.html.Tables().forward({"html": "none"})["tables"] == []
