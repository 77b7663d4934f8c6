import ast
from pathlib import Path

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from tests.each import each


def change(operator, text):
    return operator.forward({"text": text})["text"]


def test_lines_of_symbols_go():
    text = "a\n---\n===  \n\n b \n***\n"

    assert change(data.text.RemoveSymbolLines(), text) == "a\n\n b "
    assert change(data.text.RemoveSymbolLines(replace="~"), text) == "a\n~\n\n b \n~"
    assert change(data.text.RemoveSymbolLines(), " \n\t\na") == " \n\t\na"


def test_a_block_of_notices_at_an_end_goes():
    operator = data.text.RemoveBoilerplate()

    assert change(operator, "Terms of use\n\nCookie policy\n\nText") == "Text"
    assert change(operator, "Text\n\nThis site uses cookies.") == "Text"
    assert change(operator, "A\n\nTerms of use\n\nB") == "A\n\nTerms of use\n\nB"
    assert (
        change(operator, "Terms of use\n\nA\n\nTerms of use") == "Terms of use\n\nA\n\nTerms of use"
    )
    assert change(operator, "Terms of use") == "Terms of use"
    assert change(operator, "A Lorem Ipsum b") == ""
    everywhere = data.text.RemoveBoilerplate(top_or_bottom_only=False)
    assert change(everywhere, "A\n\nTerms of use\n\nB") == ""
    assert change(everywhere, "A") == "A"


NOTICES = [
    ("/* Copyright me */\nx /* y */", "\nx /* y */"),
    (
        "// Copyright 2021 X\n#ifndef A_H\n#define A_H\nint f();\n#endif\n",
        "#ifndef A_H\n#define A_H\nint f();\n#endif\n",
    ),
    ("#!/bin/sh\n# Copyright X\n\nset -e\n", "#!/bin/sh\n\nset -e\n"),
    (
        "#!/usr/bin/python\n# -*- coding: latin-1 -*-\n# (c) 2020 X\nx = 1\n",
        "#!/usr/bin/python\n# -*- coding: latin-1 -*-\nx = 1\n",
    ),
    ("# SPDX-License-Identifier: MIT\nimport os\n", "import os\n"),
    ("-- © 2020 X\nselect 1;", "select 1;"),
    (";; Copyright (C) 1999 X\n(defun f ())", "(defun f ())"),
    ("% Copyright 2010 X\n\\\\title{T}", "\\\\title{T}"),
    ("<!-- Licensed under the Apache License -->\n<p>x</p>", "\n<p>x</p>"),
    ("<?php\n/* Copyright 2020 */\nf();", "<?php\n\nf();"),
    ("<?xml version='1.0'?>\n<!-- All rights reserved. -->\n<a/>", "<?xml version='1.0'?>\n\n<a/>"),
    ("(* Copyright 2001 X *)\nlet x = 1", "\nlet x = 1"),
    ("{- Copyright 2001 X -}\nmain = f", "\nmain = f"),
    ("rem Copyright 1995 X\necho x", "echo x"),
    ('"""Copyright 2020 X. All rights reserved."""\nimport os\n', "\nimport os\n"),
    ("/* What it does */\n/* Alle Rechte vorbehalten */\nf();", "/* What it does */\n\nf();"),
    ("// 版权所有 X\nf();", "f();"),
    ("# 著作権 X\nf()\n", "f()\n"),
    ("# Tous droits réservés\nf()\n", "f()\n"),
    ("\ufeff// Copyright 2020 X\nf();", "\ufefff();"),
    ("\n\n", ""),
]
UNCHANGED = [
    "#include <linux/soundcard.h>\n",
    "# include <x.h>\nint copyright;\n",
    "#ifndef A_H\n/* Copyright 2020 X */\n#define A_H\n",
    "# A model of heat\n\nThe text.\n",
    "# Copyright law in Europe\n\nIt protects works.\n",
    "# Copyright Notice\n\nIt protects works.\n",
    "# License: which one?\n\nText.\n",
    "/* about */ x",
    "# a\n\n// b\ncode\n# c",
    "/* never ends, Copyright 2020 X",
    '"""Parse files.\n\nCopyright 2020 X\n"""\nx = 1\n',
    '"""Copyright 2020 X""" + x\n',
    "/** Returns the license of a package. */\nf();",
    "// The lock is released under the mutex.\nf();",
    "x = 1  # Copyright 2020 X\n",
    "x = 1\n# Copyright 2020 X\n",
    "%{\n#include <x.h> /* Copyright 2020 X */\n%}\n",
    "C is a language. Copyright (c) 2020 is a date.",
    "",
]


@each("case", NOTICES)
def test_a_notice_of_copyright_goes(case):
    code, left = case

    assert change(data.text.RemoveCopyrightHeader(), code) == left


@each("code", UNCHANGED)
def test_what_is_no_notice_stays(code):
    assert change(data.text.RemoveCopyrightHeader(), code) == code


def test_python_is_the_same_without_its_notices():
    operator = data.text.RemoveCopyrightHeader()
    paths = sorted(Path(ast.__file__).parent.glob("*.py"))[:150]
    codes = [path.read_text(encoding="utf-8", errors="replace") for path in paths]

    changed = [(code, new) for code in codes if (new := change(operator, code)) != code]

    assert changed
    for code, new in changed:
        assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(new))


def test_rows_of_a_table_go():
    operator = data.text.RemoveTableText()

    assert change(operator, "Title\na b c\nd e f\n\ng h i\nText here now, and more\n") == (
        "Title\nText here now, and more\n"
    )
    assert change(operator, "Title\na|b\nc|d\nend") == "Title\nend"
    assert change(operator, "a b\nc d\ne f") == "a b\nc d\ne f"
    assert change(data.text.RemoveTableText(min_col=4), "T\na b\nc d\n\n") == "T\na b\nc d\n\n"
    with pytest.raises(DefinitionError, match="max_col"):
        data.text.RemoveTableText(max_col=21)
