"""Read 1,000 PDF pages, beside a loop of pypdfium2; then with 20 poisoned ones, and under kills.

    .venv/bin/python -m benchmarks.documents [--pages N] [--rounds N] [--folder FOLDER]

Half of the pages are made by reportlab, the others are those of the PDF files below ``FOLDER``, by
default Debian's documentation (packages such as ``valgrind`` and ``nettle-dev`` have some). Three
measurements:

- throughput: ``documents.ToText`` with two workers, in turn with a loop of pypdfium2 in one process
  and with a pool of two processes that gets a document at a time. The texts must be equal.
- poisoned: 20 more pages: truncated files, cross-references that are missing, forms that contain
  themselves, content that fills the memory when it is unpacked, and pages at which a backend kills
  its process, hangs or fills the memory. The loop has what it had read when it ended.
- kills: the run with its workers is killed by SIGKILL several times and started again. The result
  must be that of an undisturbed run, byte by byte.

docling is measured if it is installed, with its models.
"""

import argparse
import gzip
import importlib.util
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import pypdfium2

from dagster_dataops import config, data

WORKERS: Final = 2
KILLS: Final = 6
LOOP_SECONDS: Final = 120
LOOP: Final = "loop, one process"
_KILLERS: Final = {"segv", "hang", "bloat"}
_WORDS: Final = ("tide", "harbour", "lamp", "ferry", "engine", "letter", "bridge", "winter")


# ---------------------------------------------------------------- the files


def made_by_reportlab(folder: Path, pages: int) -> Iterator[Path]:
    """Write PDF files of 25 pages with 3,000 characters each."""
    from reportlab.pdfgen.canvas import Canvas

    for number in range(0, pages, 25):
        path = folder / f"made-{number:04d}.pdf"
        canvas = Canvas(str(path), invariant=1)
        for page in range(min(25, pages - number)):
            choice = random.Random(number + page)
            canvas.setFont("Helvetica", 11)
            for line in range(45):
                words = " ".join(choice.choice(_WORDS) for _ in range(11))
                canvas.drawString(50, 790 - 16 * line, words)
            canvas.showPage()
        canvas.save()
        yield path


def of_debian(folder: Path, found: Path, pages: int) -> Iterator[Path]:
    """Copy PDF files with so many pages; those that are compressed are unpacked."""
    for path in sorted([*found.rglob("*.pdf"), *found.rglob("*.pdf.gz")]):
        content = path.read_bytes()
        copy = folder / f"debian-{path.name.removesuffix('.gz')}"
        copy.write_bytes(gzip.decompress(content) if path.suffix == ".gz" else content)
        try:
            count = len(pypdfium2.PdfDocument(copy))
        except pypdfium2.PdfiumError:
            continue
        if pages <= 0:
            return
        pages -= count
        yield copy


def _raw(
    path: Path, stream: bytes, entries: str = "", more: bytes = b"", form: bytes = b""
) -> Path:
    """Write a PDF file of one page by hand."""
    font = b"/Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R/Resources<<%s%s>>>>"
        % (font, more),
        b"<</Length %d%s>>stream\n%s\nendstream" % (len(stream), entries.encode(), stream),
        *([form] if form else []),
    ]
    content, places = b"%PDF-1.7\n", []
    for number, one in enumerate(objects, start=1):
        places.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    content += b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R>>\n" % (
        len(objects) + 1, table, len(objects) + 1,
    )  # fmt: skip
    path.write_bytes(content + b"startxref\n%d\n%%%%EOF\n" % content.index(b"xref\n"))
    return path


def poisoned(folder: Path) -> list[Path]:
    """Write 20 files of one page that harm their reader, four or more of a kind."""
    text = b"BT /F1 12 Tf 20 200 Td (poisoned) Tj ET"
    packer = zlib.compressobj(9)
    bomb = b"".join([*(packer.compress(b"1 w " * (1 << 18)) for _ in range(2000)), packer.flush()])
    itself = b"/XObject<</X 5 0 R>>"
    form = (
        b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<<%s>>/Length 5>>stream\n/X Do\n"
        b"endstream" % itself
    )
    files = []
    for number in range(4):
        good = _raw(folder / f"poison-truncated-{number}.pdf", text)
        good.write_bytes(good.read_bytes()[: 300 + 20 * number])
        xref = _raw(folder / f"poison-xref-{number}.pdf", text)
        xref.write_bytes(xref.read_bytes().replace(b"xref", b"xxxx"))
        recursive = b"/X Do " * (number + 1) + text
        files += [
            good,
            xref,
            _raw(folder / f"poison-recursive-{number}.pdf", recursive, more=itself, form=form),
            _raw(folder / f"poison-bomb-{number}.pdf", bomb, "/Filter/FlateDecode"),
        ]
    for kind in ("segv", "segv", "hang", "bloat"):
        files.append(_raw(folder / f"poison-{kind}-{len(files)}.pdf", text))
    return files


# ---------------------------------------------------------------- the readers


def harmed(path: str, page: int) -> str | None:
    """Do what a parser with a fault does at its page; a backend that finds nothing otherwise."""
    kind = next((kind for kind in _KILLERS if f"poison-{kind}" in path), None)
    if kind == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    while kind == "hang":
        time.sleep(1)
    kept = []
    while kind == "bloat":
        kept.append(bytearray(1 << 26))
    return None


def texts_of(path: str) -> list[str]:
    """Return the texts of all pages, as a script does it."""
    texts = []
    document = pypdfium2.PdfDocument(path)
    for page in document:
        texts.append(page.get_textpage().get_text_bounded().replace("\r\n", "\n"))
        page.close()
    document.close()
    return texts


def by_loop(paths: list[str]) -> list[str]:
    """Read all pages in this process."""
    return [text for path in paths for text in texts_of(path)]


def by_pool(paths: list[str]) -> list[str]:
    """Read all pages in two processes, a document at a time."""
    with ProcessPoolExecutor(WORKERS) as pool:
        return [text for texts in pool.map(texts_of, paths) for text in texts]


def by_docling(paths: list[str]) -> list[str]:
    """Read all documents by docling's own batch."""
    from docling.document_converter import DocumentConverter

    return [one.document.export_to_text() for one in DocumentConverter().convert_all(paths)]


def ours(source: Path, **options: Any) -> Any:
    """Return the operator whose call reads the pages of a result of ``documents.Pages``."""
    config.data_process_path = str(source.parent / "results")
    return data.documents.ToText(_max_workers=WORKERS, **options)


# ---------------------------------------------------------------- the measurements


class Cost(NamedTuple):
    """What a function costs: seconds, and those of processors in this process and its children."""

    seconds: float
    cpu: float


def measured(work: Callable[[], Any]) -> tuple[Cost, Any]:
    """Return what a function costs, and what it returns."""
    before, began = _cpu(), time.perf_counter()
    result = work()
    return Cost(time.perf_counter() - began, _cpu() - before), result


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def throughput(folder: Path, paths: list[str], rounds: int) -> None:
    """Compare the pages a second, in turn, and the texts."""
    files = [{"file": path} for path in paths]
    config.data_process_path = str(folder / "results")
    cost, pages = measured(lambda: data.documents.Pages(_max_workers=WORKERS)(files))
    source = folder / "pages.jsonl"
    source.write_bytes(b"".join(orjson.dumps(page) + b"\n" for page in pages))
    print(f"{len(pages):,} pages, {len(paths)} files; documents.Pages took {cost.seconds:.2f} s\n")
    operator = ours(source)
    contenders: dict[str, Callable[[], Any]] = {
        LOOP: lambda: by_loop(paths),
        "pool of two processes": lambda: by_pool(paths),
        "documents.ToText, two workers": lambda: [one["text"] for one in operator(str(source))],
    }
    costs: dict[str, list[Cost]] = {name: [] for name in contenders}
    texts: dict[str, Any] = {}
    for _ in range(rounds):
        for name, work in contenders.items():
            cost, texts[name] = measured(work)
            costs[name].append(cost)
    print("| reader | pages/s | of the loop | CPU ms a page | same texts |")
    print("|---|---:|---:|---:|---|")
    for name, found in costs.items():
        pairs = zip(costs[LOOP], found, strict=True)
        ratio = statistics.median(loop.seconds / one.seconds for loop, one in pairs)
        rate = len(pages) / statistics.median(one.seconds for one in found)
        cpu = 1000 * statistics.median(one.cpu for one in found) / len(pages)
        same = "yes" if texts[name] == texts[LOOP] else "NO"
        print(f"| {name} | {rate:,.0f} | {ratio:.2f} | {cpu:.2f} | {same} |")
    _docling(paths, len(pages))


def _docling(paths: list[str], count: int) -> None:
    if importlib.util.find_spec("docling") is None:
        print("| docling | not installed | | | |")
        return
    try:
        cost, _ = measured(lambda: by_docling(paths))
    except Exception as error:  # noqa: BLE001 - of its models
        print(f"| docling | failed: {type(error).__name__}: {str(error)[:80]} | | | |")
        return
    print(f"| docling, its batch | {count / cost.seconds:,.1f} | | | other |")


def with_poison(folder: Path, paths: list[str]) -> None:
    """Read the pages with poisoned ones between them, by a loop and by ours."""
    harmful = [str(path) for path in poisoned(folder)]
    mixed = [*paths, *harmful]
    random.Random(5).shuffle(mixed)
    paths = [path for path in mixed if path not in harmful]
    good = sum(len(pypdfium2.PdfDocument(path)) for path in paths)
    pages, end = _loop_over(mixed)
    config.data_process_path = str(folder / "poisoned")
    listed = data.documents.Pages(_max_workers=WORKERS)([{"file": path} for path in mixed])
    operator = data.documents.ToText(
        backends=[harmed, "pypdfium2"], timeout_s=5, _max_workers=WORKERS,
        _max_worker_memory_mb=500,
    )  # fmt: skip
    cost, result = measured(lambda: operator(listed))
    wanted = by_loop(paths)
    found = [one["text"] for one in result if "poison" not in one["file"]]
    rows = [
        row
        for path in (folder / "poisoned").rglob("*_error.jsonl")
        for row in map(orjson.loads, path.read_bytes().splitlines())
    ]
    print(f"\n{good:,} good pages and {len(harmful)} poisoned ones:\n")
    print("| reader | good pages read | lost | end |\n|---|---:|---:|---|")
    print(f"| loop with try and except | {pages:,} | {good - pages:,} | {end} |")
    same = f"{'same' if found == wanted else 'OTHER'} texts, {cost.seconds:.1f} s"
    print(f"| documents.ToText | {len(found):,} | {good - len(found):,} | {same} |\n")
    read = sum("poison" in one["file"] for one in result)
    print(f"Of the poisoned pages {read} were read, {len(rows)} are error rows:\n")
    for reason, count in sorted(Counter(map(_reason, rows)).items()):
        print(f"- {count} x {reason}")


def _loop_over(paths: list[str]) -> tuple[int, str]:
    """Return how many good pages a loop with try and except reads, and how it ends.

    Its memory is limited, so that it does not fill that of the machine.
    """
    code = (
        "import resource, sys; from benchmarks.documents import harmed, texts_of\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n        harmed(path, 1); found = texts_of(path)\n"
        "    except Exception: continue\n"
        "    print(0 if 'poison' in path else len(found), flush=True)"
    )
    loop = subprocess.Popen([sys.executable, "-c", code, *paths], stdout=subprocess.PIPE, text=True)
    try:
        out, _ = loop.communicate(timeout=LOOP_SECONDS)
        end = signal.Signals(-loop.returncode).name if loop.returncode < 0 else "finished"
    except subprocess.TimeoutExpired:
        loop.kill()
        out, _ = loop.communicate()
        end = f"hangs; ended after {LOOP_SECONDS} s"
    return sum(map(int, out.split())), end


def _reason(row: dict[str, Any]) -> str:
    """Return the kind of a poisoned page and why it failed, without numbers of its own."""
    kind = Path(row["input"]["file"]).name.rsplit("-", 1)[0]
    said = row["message"].partition(".pdf: ")[2] or row["message"]
    cause = said.rpartition("(")[2].rstrip(")") if "(" in said else said.partition(":")[0]
    return f"{kind}: {row['exception']}: {cause.partition(';')[0]}"


def under_kills(folder: Path) -> None:
    """Kill a run with its workers several times; compare its result with an undisturbed one."""
    source = folder / "pages.jsonl"
    code = (
        "import sys; from dagster_dataops import config, data\n"
        "config.data_process_path, config.data_process_resume = sys.argv[1], True\n"
        f"data.documents.ToText(_max_workers={WORKERS}, backends=['pypdfium2'])(sys.argv[2])"
    )

    def run(root: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", code, str(root), str(source)], start_new_session=True
        )

    calm, killed = folder / "calm", folder / "killed"
    cost, _ = measured(lambda: run(calm).wait())
    ended = 0
    choice = random.Random(7)
    for _ in range(KILLS):
        process = run(killed)
        try:
            process.wait(choice.uniform(0.4, 0.9) * cost.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            ended += 1
        process.wait()
    run(killed).wait()
    results = [next(root.rglob("*_results.jsonl")).read_bytes() for root in (calm, killed)]
    lines = [result.count(b"\n") for result in results]
    print(
        f"\n{ended} kills of the whole run: {lines[1]:,} of {lines[0]:,} pages, "
        f"{'the same bytes' if results[0] == results[1] else 'OTHER BYTES'}"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("/usr/share/doc"))
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="dataops-documents-"))
    try:
        debian = list(of_debian(folder, options.folder, options.pages // 2))
        count = sum(len(pypdfium2.PdfDocument(path)) for path in debian)
        made = list(made_by_reportlab(folder, options.pages - count))
        print(f"{count:,} pages of Debian's documentation, the others by reportlab")
        paths = sorted(map(str, [*debian, *made]))
        throughput(folder, paths, options.rounds)
        with_poison(folder, paths)
        under_kills(folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
