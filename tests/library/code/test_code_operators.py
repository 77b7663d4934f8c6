"""Operators of the group code."""

import sys
from types import ModuleType
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from tests.each import each

LANGUAGES = {
    "a/b/main.py": "python",
    "MAIN.PY": "python",
    "x.rs": "rust",
    "index.js": "javascript",
    "Makefile": "make",
    "src/CMakeLists.txt": "cmake",
    "README.txt": "text",
    "A.H": "cpp",
    "a.h": "c",
    ".bashrc": "bash",
    "model.R": "splus",
    "c:\\work\\prog.cs": "csharp",
    "data.json": "json",
    "lib/Makefile.am": "make",
    "Kconfig.debug": "kconfig",
    "no_ending": None,
    "photo.jpg": None,
    "": None,
    ".": None,
}


@each("path", LANGUAGES)
def test_the_language_follows_from_the_name(path: str) -> None:
    record = data.code.Language().forward({"path": path, "text": "x"})
    assert record["language"] == LANGUAGES[path]


def test_the_text_decides_where_several_languages_have_one_ending() -> None:
    texts = {"objective-c": "#import <A.h>\n@interface A\n@end\n", "octave": "function y = f(x)\n"}
    found = {
        name: data.code.Language().forward({"path": "f.m", "text": text})["language"]
        for name, text in texts.items()
    }
    assert found["objective-c"] == "objective-c"
    assert found["octave"] != "objective-c"


def test_only_listed_languages_stay() -> None:
    operator = data.code.Language(languages=["py", "c++"])
    rows = [{"path": name, "text": ""} for name in ("a.py", "b.cpp", "c.js", "d.unknown")]
    assert [row["language"] for row in operator(rows)] == ["python", "cpp"]
    assert operator.forward(rows[2]).reason == "other_language"
    assert operator.forward(rows[3]).reason == "unknown_language"
    with pytest.raises(DefinitionError, match="'klingon'"):
        data.code.Language(languages=["klingon"])


# Share of comments by language and text.
SHARES = [
    ("python", "# abc\nx=1\n", 4 / 7),
    ("python", "#!/bin/x\nx=1\n", 0),
    ("python", 'def f():\n    """ab"""\n', 8 / 15),
    ("python", "x = '# no comment'\n", 0),
    ("c", "#include <a>\n/* ab */ int x;\n", 6 / 22),
    ("javascript", "// a\nlet b;\n", 3 / 8),
    ("sql", "-- ab\nselect 1;", 4 / 12),
]


@each("case", SHARES)
def test_the_share_of_comments(case: tuple[str, str, float]) -> None:
    language, text, share = case
    record = data.code.CommentRatio(mode="tag").forward({"text": text, "language": language})
    assert record["stats"]["comment_ratio"] == pytest.approx(share)


def test_files_with_few_or_only_comments_are_dropped() -> None:
    def reason(text: str, language: Any = "python") -> str:
        return data.code.CommentRatio().forward({"text": text, "language": language}).reason

    assert reason("x = 1\n" * 100) == "low_comment_ratio"
    assert reason("# a comment\n" * 100 + "x = 1") == "high_comment_ratio"
    assert reason(" \n") == "empty"
    for language in ("klingon", "", None):
        assert reason("# a\nx = 1", language) == "unknown_language"


APACHE = """
/*
 * Licensed under the Apache License, Version 2.0 (the "License");
 */
"""
MIT = "# Permission is hereby granted, free of\n# charge, to any person obtaining a copy\n"
GPL = """
// This program is free software: you can redistribute it and/or modify
// it under the terms of the GNU General Public License as published by
// the Free Software Foundation, either version 3 of the License, or
// (at your option) any later version.
"""
BSD = "-- Redistribution and use in source and binary forms, with or without modification\n"
LICENCES = [
    ("# SPDX-License-Identifier: MIT\n", "MIT"),
    ("/* SPDX-License-Identifier: apache-2.0 OR mit */", "Apache-2.0 OR MIT"),
    ("// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT", None),
    ("<!-- SPDX-License-Identifier: MIT -->", "MIT"),
    ("# SPDX-License-Identifier: Nonsense-9", None),
    (APACHE, "Apache-2.0"),
    (MIT, "MIT"),
    (APACHE + MIT, "Apache-2.0 AND MIT"),
    ("# SPDX-License-Identifier: MIT\n" + APACHE, "MIT"),
    (GPL, "GPL-3.0-or-later"),
    (GPL.replace("General", "Affero General"), "AGPL-3.0-or-later"),
    ("# GNU Lesser General Public License, version 2.1 only", "LGPL-2.1-only"),
    (BSD, "BSD-2-Clause"),
    (BSD + "-- Neither the name of X nor the names of its contributors", "BSD-3-Clause"),
    ("x = 1", None),
    ("", None),
]


@each("case", LICENCES)
def test_the_licence_of_a_file(case: tuple[str, str | None]) -> None:
    text, licence = case
    found = data.code.Licence().forward({"text": text})["licence"]
    if "WITH" in text:
        assert found == "(GPL-2.0-only WITH Linux-syscall-note) OR MIT"
    else:
        assert found == licence


# By expression, whether MIT and Apache-2.0 allow it.
ALLOWED = {
    "MIT": True,
    "GPL-3.0-only": False,
    "MIT OR GPL-3.0-only": True,
    "MIT AND GPL-3.0-only": False,
    "MIT AND Apache-2.0": True,
    "GPL-3.0-only OR MIT AND Apache-2.0": True,
    "GPL-3.0-only AND (MIT OR Apache-2.0)": False,
    "(MIT OR GPL-3.0-only) AND Apache-2.0": True,
    "Apache-2.0 WITH LLVM-exception": True,
    "Apache-2.0+": True,
    "((MIT))": True,
}


@each("expression", ALLOWED)
def test_a_licence_must_be_listed(expression: str) -> None:
    operator = data.code.Licence(licences=["mit", "Apache-2.0"])
    outcome = operator.forward({"text": f"# SPDX-License-Identifier: {expression}\n"})
    if ALLOWED[expression]:
        assert outcome["licence"]
    else:
        assert outcome.reason == "other_licence"


def test_the_licence_of_the_repository_counts_where_the_file_names_none() -> None:
    operator = data.code.Licence(licence_key="licences", licences=["MIT"])
    rows = {
        "MIT": {"text": "x", "licences": ["mit"]},
        "other_licence": {"text": "x", "licences": ["MIT", "GPL-3.0-only"]},
        "no_licence": {"text": "x", "licences": ["MIT", "my own"]},
    }
    outcomes = [operator.forward(row) for row in rows.values()]
    assert [outcomes[0]["licence"], outcomes[1].reason, outcomes[2].reason] == list(rows)
    for value in (None, [], 3, ""):
        assert operator.forward({"text": "x", "licences": value}).reason == "no_licence"
    with pytest.raises(DefinitionError, match="'MIT OR ISC'"):
        data.code.Licence(licences=["MIT OR ISC"])


def test_the_syntax_of_python_and_json_is_checked() -> None:
    def checked(text: str, language: str | None) -> Any:
        record = data.code.Syntax().forward({"text": text, "language": language})
        return record["valid"], record["error"]

    assert checked("x = 1", "python") == (True, None)
    assert checked("y\nx = (", "python") == (False, "line 2: '(' was never closed")
    assert checked("{}", "json") == (True, None)
    assert checked("{", "json")[0] is False
    for language in ("cobol", "", None):
        assert checked("x = (", language) == (True, None)
    dropped = data.code.Syntax(mode="drop").forward({"text": "x = (", "language": "python"})
    assert dropped.reason == "syntax_error"


def test_tree_sitter_checks_further_languages() -> None:
    pytest.importorskip("tree_sitter_javascript", reason="the grammar is not installed")
    operator = data.code.Syntax(languages=["javascript"])
    rows = [
        {"text": text, "language": "javascript"}
        for text in ("let a = 1;\n", "let a = 1;\nfunction ( {\n", "(" * 5000, "")
    ]
    assert [row["valid"] for row in operator(rows)] == [True, False, False, True]
    assert operator(rows)[1]["error"].startswith("line 2: ")
    for wrong in ("klingon", "a b", "../x"):
        with pytest.raises(DefinitionError, match="install its grammar"):
            data.code.Syntax(languages=[wrong])


@each("function", ["language", "language_klingon"])
def test_a_grammar_is_found_by_either_name_of_its_function(
    function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    javascript = pytest.importorskip("tree_sitter_javascript", reason="it is not installed")
    grammar = ModuleType("tree_sitter_klingon")
    setattr(grammar, function, javascript.language)
    monkeypatch.setitem(sys.modules, "tree_sitter_klingon", grammar)
    operator = data.code.Syntax(languages=["klingon"])
    assert operator.forward({"text": "let a;", "language": "klingon"})["valid"] is True
    assert operator.forward({"text": "let (", "language": "klingon"})["valid"] is False
