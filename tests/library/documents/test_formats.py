"""Pages of each format: their number, size, text, Markdown, tables, images and metadata."""

import base64
import re
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from dagster_dataops import data
from dagster_dataops.errors import FileError
from tests.library.documents.made_files import (
    PNG,
    docx,
    epub,
    paragraph,
    pdf,
    pptx,
    shape,
    zipped,
)

BREAK_BEFORE = "<w:pageBreakBefore/>"
NUMBERED = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
BULLET = '<w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr>'


def pages_of(path: Path, **options: Any) -> list[dict[str, Any]]:
    return data.documents.Pages(_concurrency_mode="single", **options)([{"file": str(path)}])


def texts_of(path: Path, operator: str = "ToText", **options: Any) -> list[Any]:
    read = getattr(data.documents, operator)(_concurrency_mode="single", **options)
    return [record[options.get("output_key", "text")] for record in read(pages_of(path))]


def test_a_pdf_file_has_a_record_a_page_with_size_and_text(tmp_path: Path) -> None:
    path = pdf(tmp_path / "a.pdf", ["one", "", "three"])

    assert pages_of(path, find_text=True) == [
        {
            "file": str(path),
            "page": page,
            "pages": 3,
            "width": 595.28,
            "height": 841.89,
            "has_text": page != 2,
        }
        for page in (1, 2, 3)
    ]
    assert texts_of(path) == ["one", "", "three"]


def test_the_backend_that_found_the_text_is_named(tmp_path: Path) -> None:
    read = data.documents.ToText(_concurrency_mode="single")
    found = read(pages_of(pdf(tmp_path / "a.pdf", ["one", ""])))

    assert [record["backend"] for record in found] == ["pypdfium2", None]


def test_without_a_column_of_pages_the_whole_document_is_read(tmp_path: Path) -> None:
    record = {"file": str(pdf(tmp_path / "a.pdf", ["one", "two"]))}
    read = data.documents.ToText(page_key=None, _concurrency_mode="single")

    assert read([record])[0]["text"] == "one\n\ntwo"


def test_markdown_of_a_pdf_file_has_headings_items_and_paragraphs(tmp_path: Path) -> None:
    lines = "# Title\nA line that goes\non here.\n\nAnother one.\n\n• first\n• second\n\n#tag 1"
    path = pdf(tmp_path / "a.pdf", [lines, "A divided exam-\nple of this."])

    assert texts_of(path, "ToMarkdown") == [
        "# Title\n\nA line that goes on here.\n\nAnother one.\n\n- first\n\n- second\n\n\\#tag 1",
        "A divided example of this.",
    ]


def test_tables_and_images_of_a_pdf_file_are_found(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(PNG)
    rows = [["a", "b c"], ["1", "2"]]
    path = pdf(tmp_path / "a.pdf", ["x"], table=rows, image=picture)

    assert texts_of(path, "Tables", output_key="tables") == [[rows]]
    (made,) = data.documents.Images().forward({"file": str(path), "page": 1})
    assert (made["image"].media_type, made["image_index"]) == ("image/png", 0)
    drawn = data.documents.ToImage(dpi=72).forward({"file": str(path), "page": 1})["image"]
    assert drawn.data[16:24] == (596).to_bytes(4, "big") + (842).to_bytes(4, "big")


def test_metadata_have_the_same_keys_in_every_format(tmp_path: Path) -> None:
    page = "<html lang='de'><head><title>A title</title></head><body><p>x</p></body></html>"
    (tmp_path / "a.html").write_text(page)
    paths = [
        pdf(tmp_path / "a.pdf", ["x"]),
        docx(tmp_path / "a.docx", paragraph("x")),
        pptx(tmp_path / "a.pptx", [shape("x")]),
        epub(tmp_path / "a.epub", [page]),
        tmp_path / "a.html",
    ]
    read = data.documents.Metadata(_concurrency_mode="single")
    found = [record["metadata"] for record in read([{"file": str(path)} for path in paths])]

    assert [one["format"] for one in found] == ["pdf", "docx", "pptx", "epub", "html"]
    assert {tuple(one) for one in found} == {tuple(found[0])}
    assert [one["title"] for one in found] == ["A title", "A title", "A title", "A book", "A title"]
    assert [one["author"] for one in found] == ["Ada", "Ada", "Ada", "Ada; Bob", None]
    assert found[1]["created"] == "2026-01-02T03:04:05Z"
    assert (found[3]["language"], found[4]["language"]) == ("de", "de")
    assert found[0]["created"] == "2000-01-01T00:00:00+00:00"


def test_metadata_of_html_are_those_that_its_head_names(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        "<html><head><title>A  title\n of mine</title><meta name='Author' content='Ada Lovelace'>"
        "<meta name='description' content='About it'><meta name='keywords' content='a, b'>"
        "<meta name='generator' content='Hugo'></head>"
        "<body><svg><title>A circle</title></svg><h1>A heading</h1><p>x</p></body></html>"
    )
    found = data.documents.Metadata().forward({"file": str(tmp_path / "a.html")})["metadata"]

    told = {key: found[key] for key in ("title", "author", "subject", "keywords", "producer")}
    assert told == {
        "title": "A title of mine",
        "author": "Ada Lovelace",
        "subject": "About it",
        "keywords": "a, b",
        "producer": "Hugo",
    }


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        pytest.param(paragraph("one"), ["one"], id="no break"),
        pytest.param(paragraph("one|two"), ["one", "two"], id="explicit"),
        pytest.param(paragraph("one~two"), ["one", "two"], id="of Word"),
        pytest.param(paragraph("one|~two"), ["one", "two"], id="explicit and of Word"),
        pytest.param(
            paragraph("one|") + paragraph("~two"), ["one", "two"], id="of Word in the next one"
        ),
        pytest.param(
            paragraph("one|two~three"), ["one", "two", "three"], id="explicit, then of Word"
        ),
        pytest.param(paragraph("one||three"), ["one", "", "three"], id="an empty page"),
        pytest.param(
            paragraph("one") + paragraph("two", BREAK_BEFORE), ["one", "two"], id="before"
        ),
        pytest.param(paragraph("one", BREAK_BEFORE), ["one"], id="before the first"),
        pytest.param(
            paragraph("one", "<w:sectPr/>") + paragraph("two") + "<w:sectPr/>",
            ["one", "two"],
            id="section",
        ),
        pytest.param(
            paragraph("one", "<w:sectPr/>")
            + paragraph("two")
            + '<w:sectPr><w:type w:val="continuous"/></w:sectPr>',
            ["one\ntwo"],
            id="continuous section",
        ),
        pytest.param(
            "<w:tbl><w:tr><w:tc>" + paragraph("one") + "</w:tc></w:tr><w:tr><w:tc>"
            "<w:p><w:r><w:lastRenderedPageBreak/><w:t>two</w:t></w:r></w:p></w:tc></w:tr></w:tbl>",
            ["one", "two"],
            id="in a table",
        ),
        pytest.param("", [""], id="empty"),
    ],
)
def test_pages_of_word_end_at_breaks(tmp_path: Path, body: str, texts: list[str]) -> None:
    assert texts_of(docx(tmp_path / "a.docx", body)) == texts


def test_pages_of_word_have_the_size_of_their_section(tmp_path: Path) -> None:
    first = paragraph("one|two", '<w:sectPr><w:pgSz w:w="12240" w:h="15840"/></w:sectPr>')
    last = paragraph("three") + '<w:sectPr><w:pgSz w:w="15840" w:h="12240"/></w:sectPr>'
    pages = pages_of(docx(tmp_path / "a.docx", first + last))

    assert [(page["width"], page["height"]) for page in pages] == [
        (612, 792),
        (612, 792),
        (792, 612),
    ]


def test_markdown_of_word_has_headings_lists_tables_and_links(tmp_path: Path) -> None:
    body = (
        paragraph("Part", '<w:pStyle w:val="Own"/>')
        + paragraph("Chapter", '<w:pStyle w:val="H2"/>')
        + paragraph("bold", run="<w:b/>")
        + paragraph("not bold", run='<w:b w:val="0"/>')
        + paragraph("first", NUMBERED)
        + paragraph("inner", BULLET)
        + '<w:p><w:r><w:t xml:space="preserve">see </w:t></w:r><w:hyperlink r:id="l"><w:r>'
        "<w:t>here</w:t></w:r></w:hyperlink><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>, new</w:t></w:r></w:ins></w:p>"
        '<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/><w:vMerge w:val="restart"/></w:tcPr>'
        + paragraph("a|b".replace("|", "_"))
        + "</w:tc></w:tr><w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>"
        + paragraph("")
        + "</w:tc><w:tc>"
        + paragraph("d")
        + "</w:tc></w:tr></w:tbl>"
    )
    path = docx(tmp_path / "a.docx", body, targets={"l": ("hyperlink", "https://a.org/")})

    expected = (
        "# Part\n\n## Chapter\n\n**bold**\n\nnot bold\n\n1. first\n   - inner\n\n"
        "see [here](https://a.org/), new\n\n| a_b | a_b |\n| --- | --- |\n| a_b | d |"
    )
    assert texts_of(path, "ToMarkdown") == [expected]
    assert texts_of(path)[0].splitlines()[-3:] == ["see here, new", "a_b\ta_b", "a_b\td"]
    assert texts_of(path, "Tables", output_key="tables") == [[[["a_b", "a_b"], ["a_b", "d"]]]]


def test_word_files_of_the_strict_form_are_read(tmp_path: Path) -> None:
    usual = docx(tmp_path / "a.docx", paragraph("one|two", '<w:pStyle w:val="H2"/>'))
    strict = tmp_path / "strict.docx"
    with ZipFile(usual) as read, ZipFile(strict, "w") as written:
        for name in read.namelist():
            text = re.sub(
                r"http://schemas.openxmlformats.org/(\w+)/2006/(main|relationships)\b",
                r"http://purl.oclc.org/ooxml/\1/\2",
                read.read(name).decode(),
            )
            written.writestr(name, text)

    assert texts_of(strict, "ToMarkdown") == ["## one", "## two"]


def test_alternatives_in_word_files_are_read_once(tmp_path: Path) -> None:
    run = "<w:r><w:t>{}</w:t></w:r>"
    names = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    body = (
        f'<w:p><mc:AlternateContent xmlns:mc="{names}"><mc:Choice>{run.format("new")}</mc:Choice>'
        f"<mc:Fallback>{run.format('old')}</mc:Fallback></mc:AlternateContent></w:p>"
    )

    assert texts_of(docx(tmp_path / "a.docx", body)) == ["new"]


def test_content_in_cells_of_word_is_read_once(tmp_path: Path) -> None:
    names = "http://schemas.openxmlformats.org/markup-compatibility/2006"

    def box(text: str) -> str:
        content = f"<w:txbxContent>{paragraph(text)}</w:txbxContent>"
        return (
            f'<w:p><w:r><mc:AlternateContent xmlns:mc="{names}"><mc:Choice><w:drawing>{content}'
            f"</w:drawing></mc:Choice><mc:Fallback><w:pict>{content}</w:pict></mc:Fallback>"
            "</mc:AlternateContent></w:r></w:p>"
        )

    def table(*cells: str) -> str:
        row = "".join(f"<w:tc>{cell}</w:tc>" for cell in cells)
        return f"<w:tbl><w:tr>{row}</w:tr></w:tbl>"

    control = f"<w:sdt><w:sdtContent>{paragraph('controlled')}</w:sdtContent></w:sdt>"
    body = table(control, paragraph("outer") + table(paragraph("inner")), box("boxed")) + box("own")
    path = docx(tmp_path / "a.docx", body)

    tables = texts_of(path, "Tables", output_key="tables")
    assert tables == [[[["controlled", "outer inner", "boxed"]]]]
    assert texts_of(path)[0].split() == ["controlled", "outer", "inner", "boxed", "own"]


@pytest.mark.parametrize(
    ("sides", "size"),
    [
        ('w:w="12240" w:h="15840"', (612, 792)),
        ('w:w="11909.5" w:h="16834.0"', (595.475, 841.7)),
        ('w:w="12240"', (None, None)),
        ('w:w="nan" w:h="15840"', (None, None)),
        ('w:w="21cm" w:h="29.7cm"', (None, None)),
    ],
)
def test_a_size_that_is_no_number_of_twips_is_unknown(
    tmp_path: Path, sides: str, size: object
) -> None:
    body = paragraph("one") + f"<w:sectPr><w:pgSz {sides}/></w:sectPr>"
    (page,) = pages_of(docx(tmp_path / "a.docx", body))

    assert (page["width"], page["height"]) == size


def test_a_page_that_the_file_does_not_have_costs_itself_alone(tmp_path: Path) -> None:
    book, slides = (
        epub(tmp_path / "a.epub", ["<p>one</p>"]),
        pptx(tmp_path / "a.pptx", [shape("one")]),
    )
    added = (
        (book, "OEBPS/book.opf", "</spine>", '<itemref idref="gone"/></spine>'),
        (slides, "ppt/presentation.xml", "</p:sldIdLst>", '<p:sldId r:id="gone"/></p:sldIdLst>'),
    )
    for path, part, before, after in added:
        with ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        zipped(path, {**parts, part: parts[part].decode().replace(before, after)})
        read = data.documents.ToText()

        assert [page["page"] for page in pages_of(path)] == [1, 2]
        assert read.forward({"file": str(path), "page": 1})["text"].strip() == "one"
        with pytest.raises(FileError, match="its part 'gone' is missing"):
            read.forward({"file": str(path), "page": 2})


def test_an_image_that_an_office_file_does_not_have_is_an_error(tmp_path: Path) -> None:
    drawing = '<w:p><w:r><w:drawing><a:blip r:embed="gone"/></w:drawing></w:r></w:p>'
    picture = '<p:pic><p:blipFill><a:blip r:embed="gone"/></p:blipFill></p:pic>'
    for path in (docx(tmp_path / "a.docx", drawing), pptx(tmp_path / "a.pptx", [picture])):
        with pytest.raises(FileError, match="its part 'gone' is missing"):
            data.documents.Images().forward({"file": str(path), "page": 1})


def test_images_of_word_are_those_of_the_page(tmp_path: Path) -> None:
    drawing = '<w:p><w:r><w:drawing><a:blip r:embed="i"/></w:drawing></w:r></w:p>'
    outside = drawing.replace('"i"', '"o"')
    path = docx(
        tmp_path / "a.docx",
        paragraph("one|two") + drawing + outside,
        targets={"i": ("image", "media/a.png"), "o": ("image", "https://a.org/b.png")},
        parts={"word/media/a.png": PNG},
    )
    read = data.documents.Images()

    assert read.forward({"file": str(path), "page": 1}).reason == "no_images"
    (made,) = read.forward({"file": str(path), "page": 2})
    assert (made["image"].data, made["image"].media_type) == (PNG, "image/png")


def test_a_page_of_a_presentation_is_a_slide_in_its_order(tmp_path: Path) -> None:
    table = (
        "<p:graphicFrame><a:tbl><a:tr><a:tc><a:txBody><a:p><a:r><a:t>a</a:t></a:r></a:p>"
        "</a:txBody></a:tc><a:tc><a:txBody><a:p><a:r><a:t>b</a:t></a:r></a:p></a:txBody></a:tc>"
        "</a:tr></a:tbl></p:graphicFrame>"
    )
    slides = [
        shape("Title", "title") + shape("first", "body") + shape("inner", "body", 1),
        f"<p:grpSp>{shape('grouped')}</p:grpSp>{table}",
        '<p:pic><p:blipFill><a:blip r:embed="i0"/></p:blipFill></p:pic>',
    ]
    path = pptx(tmp_path / "a.pptx", slides, {"a.png": PNG})
    pages = pages_of(path, find_text=True)

    assert [(page["width"], page["height"]) for page in pages] == [(720, 540)] * 3
    assert [page["has_text"] for page in pages] == [True, True, False]
    assert texts_of(path) == ["Title\nfirst\ninner", "grouped\na\tb", ""]
    assert texts_of(path, "ToMarkdown") == [
        "# Title\n\n- first\n   - inner",
        "grouped\n\n| a | b |\n| --- | --- |",
        "",
    ]
    assert texts_of(path, "Tables", output_key="tables") == [[], [[["a", "b"]]], []]
    (made,) = data.documents.Images().forward({"file": str(path), "page": 3})
    assert made["image"].data == PNG


def test_a_page_of_a_book_is_an_item_of_its_spine(tmp_path: Path) -> None:
    first = "<html><body><h1>One</h1><p>A <b>b</b>.</p><img src='../i.png'/></body></html>"
    second = (
        "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><body><table><tr>"
        "<td>a</td><td>b</td></tr></table></body></html>"
    )
    path = epub(tmp_path / "a.epub", [first, second], {"OEBPS/i.png": PNG})

    assert texts_of(path)[0].split() == ["One", "A", "b."]
    assert "A **b**." in texts_of(path, "ToMarkdown")[0]
    assert texts_of(path, "Tables", output_key="tables") == [[], [[["a", "b"]]]]
    (made,) = data.documents.Images().forward({"file": str(path), "page": 1})
    assert made["image"].data == PNG


def test_markdown_of_a_web_page_has_the_style_of_other_documents(tmp_path: Path) -> None:
    page = (
        "<html><head><title>Shop</title></head><body><h1>One</h1><ul><li>a</li></ul><h2>Two</h2>"
        "<table><tr><td>x</td><td>y</td></tr><tr><td>1</td><td>2</td></tr></table></body></html>"
    )
    (tmp_path / "a.html").write_text(page)
    expected = "# One\n\n- a\n\n## Two\n\n| x | y |\n| --- | --- |\n| 1 | 2 |"

    assert texts_of(tmp_path / "a.html", "ToMarkdown") == [expected]
    declared = f"<?xml version='1.0' encoding='utf-8'?>\n<!DOCTYPE html>\n\n{page}"
    book = epub(tmp_path / "a.epub", [page, declared])
    assert texts_of(book, "ToMarkdown") == [expected, expected]


def test_a_web_page_is_one_page_in_its_encoding(tmp_path: Path) -> None:
    coded = base64.b64encode(PNG).decode()
    path = tmp_path / "a.html"
    path.write_bytes(
        f"<meta charset='windows-1251'><h1>Привет</h1><p>мир</p>"
        f"<img src='data:image/png;base64,{coded}'>"
        "<img src='https://a.org/b.png'><img src='data:nonsense'>".encode("windows-1251")
    )
    pages = pages_of(path, find_text=True)

    assert [(page["page"], page["pages"], page["width"]) for page in pages] == [(1, 1, None)]
    assert pages[0]["has_text"]
    assert texts_of(path)[0].split() == ["Привет", "мир"]
    (made,) = data.documents.Images().forward({"file": str(path), "page": 1})
    assert made["image"].data == PNG


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-16-be"])
def test_a_web_page_in_unicode_is_read_by_its_mark(tmp_path: Path, encoding: str) -> None:
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    path = tmp_path / "a.html"
    path.write_bytes(mark + "<html><body><p>Привет</p></body></html>".encode(encoding))

    assert texts_of(path) == ["Привет"]
