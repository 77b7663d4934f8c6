"""Documents for tests, made by these functions: PDF, DOCX, PPTX, EPUB and HTML."""

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Table

_PREFIX = "http://schemas.openxmlformats.org"
_W = f"{_PREFIX}/wordprocessingml/2006/main"
_R = f"{_PREFIX}/officeDocument/2006/relationships"
_A = f"{_PREFIX}/drawingml/2006/main"
_P = f"{_PREFIX}/presentationml/2006/main"
_TYPES = {
    "word": "wordprocessingml.document.main+xml",
    "ppt": "presentationml.presentation.main+xml",
}
PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\b\2\0\0\0\x90wS\xde\0\0\0\fIDATx\x9cc\xf8\xcf\xc0\0"
    b"\0\3\1\1\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82"
)


def pdf(
    path: Path,
    pages: Sequence[str],
    *,
    locked_by: str = "",
    table: Sequence[Sequence[str]] = (),
    image: Path | None = None,
) -> Path:
    """Write a PDF file with these texts, one a page; lines that begin with ``# `` are large."""
    encryption = StandardEncryption(locked_by) if locked_by else None
    canvas = Canvas(str(path), pagesize=A4, encrypt=encryption, invariant=1)
    canvas.setTitle("A title")
    canvas.setAuthor("Ada")
    for text in pages:
        height = 800.0
        for line in text.split("\n"):
            size = 20 if line.startswith("# ") else 11
            canvas.setFont("Helvetica", size)
            height -= 1.3 * size
            canvas.drawString(50, height, line.removeprefix("# "))
        if table:
            drawn = Table(
                list(map(list, table)), style=[("GRID", (0, 0), (-1, -1), 1, colors.black)]
            )
            drawn.wrapOn(canvas, 400, 400)
            drawn.drawOn(canvas, 50, 300)
        if image is not None:
            canvas.drawImage(ImageReader(str(image)), 50, 100, 50, 50)
        canvas.showPage()
    canvas.save()
    return path


def raw_pdf(path: Path, contents: Sequence[bytes], *, stream: str = "", more: bytes = b"") -> Path:
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b""]
    kids = []
    for content in contents:
        kids.append(len(objects) + 1)
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents %d 0 R"
            b"/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>%s>>>>"
            % (len(objects) + 2, more)
        )
        objects.append(
            b"<</Length %d%s>>stream\n%s\nendstream" % (len(content), stream.encode(), content)
        )
    listed = b" ".join(b"%d 0 R" % kid for kid in kids)
    objects[1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(kids), listed)
    data, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    path.write_bytes(data)
    return path


def shown(text: str) -> bytes:
    return f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode()


def deflated_bomb(megabytes: int) -> bytes:
    packer = zlib.compressobj(9)
    block = b" " * (1 << 20)
    return b"".join([*(packer.compress(block) for _ in range(megabytes)), packer.flush()])


def zipped(path: Path, parts: Mapping[str, str | bytes]) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def _relations(targets: Mapping[str, tuple[str, str]]) -> str:
    rows = "".join(
        f'<Relationship Id="{one}" Type="{_R}/{kind}" Target="{target}"{_mode(target)}/>'
        for one, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{_PREFIX}/package/2006/relationships">{rows}</Relationships>'


def _mode(target: str) -> str:
    return ' TargetMode="External"' if "://" in target else ""


def _office(folder: str, main: str) -> dict[str, str | bytes]:
    kind = f"application/vnd.openxmlformats-officedocument.{_TYPES[folder]}"
    return {
        "[Content_Types].xml": (
            f'<Types xmlns="{_PREFIX}/package/2006/content-types">'
            f'<Override PartName="/{main}" ContentType="{kind}"/></Types>'
        ),
        "_rels/.rels": _relations({"r1": ("officeDocument", main)}),
        "docProps/core.xml": (
            '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/'
            'core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/" '
            'xmlns:dcterms="http://purl.org/dc/terms/"><dc:title>A title</dc:title>'
            "<dc:creator>Ada</dc:creator><dcterms:created>2026-01-02T03:04:05Z</dcterms:created>"
            "</cp:coreProperties>"
        ),
    }


def docx(
    path: Path,
    body: str,
    *,
    targets: Mapping[str, tuple[str, str]] | None = None,
    parts: Mapping[str, str | bytes] | None = None,
) -> Path:
    """Write a DOCX file with this content of its body; ``w:`` and ``r:`` are prefixes."""
    names = f'xmlns:w="{_W}" xmlns:r="{_R}" xmlns:a="{_A}"'
    styles = {
        "styles": ("styles", "styles.xml"),
        "numbering": ("numbering", "numbering.xml"),
        **(targets or {}),
    }
    return zipped(
        path,
        {
            **_office("word", "word/document.xml"),
            "word/document.xml": f"<w:document {names}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": _relations(styles),
            "word/styles.xml": (
                f"<w:styles {names}>"
                '<w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style>'
                '<w:style w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="Base"/></w:style>'
                '<w:style w:styleId="Base"><w:name w:val="Base"/><w:pPr><w:outlineLvl w:val="0"/>'
                "</w:pPr></w:style></w:styles>"
            ),
            "word/numbering.xml": (
                f"<w:numbering {names}>"
                '<w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/>'
                '</w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>'
                '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num></w:numbering>'
            ),
            **(parts or {}),
        },
    )


def paragraph(text: str, properties: str = "", run: str = "") -> str:
    """Return a paragraph of a DOCX file; ``|`` is an explicit break, ``~`` one of Word."""
    parts = text.replace("|", '</w:t><w:br w:type="page"/><w:t>')
    parts = parts.replace("~", "</w:t><w:lastRenderedPageBreak/><w:t>")
    return (
        f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:rPr>{run}</w:rPr><w:t>{parts}</w:t></w:r></w:p>"
    )


def pptx(path: Path, slides: Sequence[str], images: Mapping[str, bytes] | None = None) -> Path:
    """Write a PPTX file with these shape trees; they are stored in reverse order."""
    count = len(slides)
    names = f'xmlns:p="{_P}" xmlns:a="{_A}" xmlns:r="{_R}"'
    ids = "".join(f'<p:sldId id="{256 + n}" r:id="s{n}"/>' for n in range(count))
    parts = {
        f"ppt/slides/slide{count - n}.xml": (
            f"<p:sld {names}><p:cSld><p:spTree>{slide}</p:spTree></p:cSld></p:sld>"
        )
        for n, slide in enumerate(slides)
    }
    media = {
        f"ppt/slides/_rels/slide{count - n}.xml.rels": _relations(
            {f"i{m}": ("image", f"../media/{name}") for m, name in enumerate(images or {})}
        )
        for n in range(count)
    }
    return zipped(
        path,
        {
            **_office("ppt", "ppt/presentation.xml"),
            "ppt/presentation.xml": (
                f"<p:presentation {names}><p:sldIdLst>{ids}</p:sldIdLst>"
                '<p:sldSz cx="9144000" cy="6858000"/></p:presentation>'
            ),
            "ppt/_rels/presentation.xml.rels": _relations(
                {f"s{n}": ("slide", f"slides/slide{count - n}.xml") for n in range(count)}
            ),
            **parts,
            **media,
            **{f"ppt/media/{name}": content for name, content in (images or {}).items()},
        },
    )


def shape(text: str, place: str = "", level: int = 0) -> str:
    """Return a shape of a slide with one paragraph; ``place`` is the type of its place."""
    kind = f'<p:ph type="{place}"/>' if place else ""
    return (
        f"<p:sp><p:nvSpPr><p:nvPr>{kind}</p:nvPr></p:nvSpPr><p:txBody><a:p>"
        f'<a:pPr lvl="{level}"/><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>'
    )


def epub(
    path: Path, chapters: Sequence[str], parts: Mapping[str, str | bytes] | None = None
) -> Path:
    """Write an EPUB file with these chapters, HTML pages."""
    items = "".join(
        f'<item id="c{n}" href="text/c%20{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    return zipped(
        path,
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": (
                '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
                '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
            ),
            "OEBPS/book.opf": (
                '<package xmlns="http://www.idpf.org/2007/opf">'
                '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A book</dc:title>'
                "<dc:creator>Ada</dc:creator><dc:creator>Bob</dc:creator>"
                "<dc:language>de</dc:language></metadata>"
                f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
            ),
            **{f"OEBPS/text/c {n}.xhtml": page for n, page in enumerate(chapters)},
            **(parts or {}),
        },
    )
