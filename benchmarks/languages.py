"""Measure which share of good and of bad texts the filters drop, in 12 languages.

``python -m benchmarks.languages [FOLDER]``: downloads packages of Debian with handbooks and help
pages into FOLDER (125 MB; they are not installed), takes their texts out of the pages with two
extractors, and prints, for each language, the share that is dropped with ``language="en"`` and with
the language of the text. Bad texts are made of the same documents. Needs a Debian system (apt-get,
dpkg-deb) and the extras library, dedup.
"""

import argparse
import random
import re
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dagster_dataops import data
from dagster_dataops.library.pretraining_pipeline import pretraining_pipeline

LANGUAGES = ("en", "de", "es", "fr", "zh", "ja", "it", "pt", "ru", "pl", "nl", "ko")
_MOST_OF_A_SOURCE = 40
_LEAST_CHARACTERS = {"zh": 200, "ja": 200, "ko": 250}
_HELP = {"en": "en-us", "zh": "zh-cn"}
_PACKAGES = (
    "debian-handbook",
    *(f"libreoffice-help-{_HELP.get(one, one)}" for one in LANGUAGES),
    *(f"debian-reference-{one}" for one in ("en", "de", "es", "fr", "it", "ja", "pt", "zh-cn")),
    *(f"aptitude-doc-{one}" for one in ("en", "es", "fr", "it", "ja", "nl", "ru")),
    *(f"maint-guide-{one}" for one in ("de", "es", "fr", "it", "ja", "ru", "zh-cn")),
    *(f"debian-faq-{one}" for one in ("de", "fr", "it", "ja", "nl", "ru", "zh-cn")),
    *(f"developers-reference{one}" for one in ("", "-de", "-fr", "-it", "-ja", "-ru")),
)
_INDEX = re.compile(r"(?:^|/)(?:index|ix\d+|toc|ftn|search|genindex|bookinfo|main\d+)\b[^/]*$")
_SOURCE = re.compile(r"debian-handbook|libreoffice|aptitude|maint-guide|reference|FAQ|faq")
_PLACE = re.compile(
    r"/help/([a-z]{2})(?:-[A-Z]{2})?/text|/html/([a-z]{2})-[A-Z]{2}/"
    r"|(?:-|/|\.)(en|de|es|fr|it|pt|ja|nl|ru|pl|ko|zh)(?:[-_][a-z]{2,3})?(?:/|\.html)",
    re.IGNORECASE,
)


def pages(folder: Path) -> dict[tuple[str, str], list[Path]]:
    """Return the pages by language and source, some of each, always the same ones."""
    found = defaultdict(list)
    for path in sorted(folder.glob("usr/share/**/*.html")):
        name = str(path.relative_to(folder))
        place, source = _PLACE.search(name), _SOURCE.search(name)
        if place and source and not _INDEX.search(name):
            language = next(filter(None, place.groups())).lower()
            found[language, source[0].lower()].append(path)
    chance = random.Random(0)
    return {key: chance.sample(paths, min(300, len(paths))) for key, paths in found.items()}


def download(folder: Path) -> None:
    """Download the packages, and take the files out of them; nothing is installed."""
    archives = folder / "packages"
    archives.mkdir(parents=True, exist_ok=True)
    if not any(archives.glob("*.deb")):
        subprocess.run(["apt-get", "download", *_PACKAGES], cwd=archives, check=True)
    for archive in archives.glob("*.deb"):
        done = folder / f".{archive.name}"
        if not done.exists():
            subprocess.run(["dpkg-deb", "-x", archive, folder / "files"], check=True)
            done.touch()


def good_texts(folder: Path, backend: str) -> dict[str, list[str]]:
    """Return the texts of the pages by language, those in that language alone."""
    extract = data.html.Extract(backend=backend, timeout_s=None)
    identify = data.language.Identify()
    texts = defaultdict(list)
    for (language, _), paths in pages(folder / "files").items():
        taken = 0
        for path in paths:
            if language not in LANGUAGES or taken == _MOST_OF_A_SOURCE:
                break
            page = path.read_text(encoding="utf-8", errors="replace")
            record: Any = extract.forward({"html": page})
            text = record.get("text", "") if isinstance(record, dict) else ""
            if len(text) < _LEAST_CHARACTERS.get(language, 500):
                continue
            if identify.forward({"text": text})["lang"] == language:
                texts[language].append(text)
                taken += 1
    return texts


def bad_texts(good: list[str]) -> dict[str, list[str]]:
    """Return texts that are no prose, made of the words of good ones, by kind."""
    chance = random.Random(0)
    kinds: dict[str, list[str]] = defaultdict(list)
    for text in good[:60]:
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        sentences = [
            part.strip()
            for part in re.split("(?<=[.!?])\\s|(?<=[\u3002\uff01\uff1f])", text)
            if part
        ]
        words = text.split() if " " in text[:200] else re.findall(r"\w{1,4}", text)
        chance.shuffle(words)
        kinds["menu"].append("\n".join(line[:12] for line in lines[:80]))
        kinds["list"].append("\n".join(f"- {word}" for word in words[:120]))
        rows = zip(*[iter(words[:200])] * 4, strict=False)
        kinds["table"].append("\n".join(f"{one} | {two} | 12.5 | 300" for one, two, _, _ in rows))
        phrase = " ".join(words[:6])
        kinds["spam"].append("\n".join(f"{phrase} {word}." for word in words[6:46]))
        kinds["repeated"].append("\n".join([*(sentences[:2] or lines[:2])] * 20))
        kinds["numbers"].append("\n".join(f"{n} {n * 37 % 1000} {n * 7.5}" for n in range(80)))
        kinds["code"].append(
            "\n".join(f"if (a{n} > {n}) {{ b[{n}] = f({n}); }}" for n in range(60))
        )
        letters = [letter for letter in text[:800] if letter.isalnum()]
        chance.shuffle(letters)
        kinds["noise"].append(" ".join(_pieces("".join(letters), chance)))
        kinds["cut"].append("\n".join(f"{line[:40]}..." for line in lines[:60]))
    return kinds


def _pieces(letters: str, chance: random.Random) -> Iterator[str]:
    place = 0
    while place < len(letters):
        size = chance.randint(1, 20)
        yield letters[place : place + size]
        place += size


def dropped(texts: list[str], run: Callable[[list[dict[str, str]]], list[Any]]) -> float:
    """Return the share of the texts that are dropped."""
    kept = run([{"text": text, "id": str(n)} for n, text in enumerate(texts)])
    return 1 - len({record["id"] for record in kept}) / max(1, len(texts))


def by_pipeline(language: str) -> Callable[[list[dict[str, str]]], list[Any]]:
    """Return the filters before the near-duplicates of the ready pipeline, as a function."""
    made = pretraining_pipeline(language=language, blocked_words=["no such word"])
    nodes = made.graph.nodes.values()
    steps = [node.operator for node in nodes][: [*made.graph.nodes].index("near_duplicates")]

    def run(records: list[dict[str, str]]) -> list[Any]:
        for step in steps:
            outcomes = [(record, step.forward(record)) for record in records]
            records = [record for record, found in outcomes if not isinstance(found, data_drop())]
        return records

    return run


def data_drop() -> type:
    from dagster_dataops.operators.outcomes.record_context import Drop

    return Drop


def by_preset(language: str) -> Callable[[list[dict[str, str]]], list[Any]]:
    """Return ``filters.Pretraining`` as a function."""
    judge = data.filters.Pretraining(language=language)

    def run(records: list[dict[str, str]]) -> list[Any]:
        return [one for one in records if not isinstance(judge.forward(dict(one)), data_drop())]

    return run


def reasons(texts: list[str], language: str) -> Counter[str]:
    """Return the reasons of ``filters.Pretraining``, by number of texts."""
    judge = data.filters.Pretraining(language=language, mode="tag")
    found = (judge.forward({"text": text})["drop_reason"] for text in texts)
    return Counter(one for one in found if one)


def report(good: Mapping[str, list[str]], backend: str, *, explain: bool) -> None:
    """Print the table of one extractor."""
    print(f"\n{backend}\n")
    print("| language | texts | preset en | preset | pipeline en | pipeline | bad en | bad |")
    print("|---|---|---|---|---|---|---|---|")
    for language in LANGUAGES:
        texts = good.get(language, [])
        bad = [text for some in bad_texts(texts).values() for text in some]
        shares = [
            dropped(some, way(used))
            for some, way in ((texts, by_preset), (texts, by_pipeline), (bad, by_preset))
            for used in ("en", language)
        ]
        cells = " | ".join(f"{share:.0%}" for share in shares)
        print(f"| {language} | {len(texts)} | {cells} |", flush=True)
        if explain:
            print("   ", reasons(texts, language).most_common(5))
            kinds = bad_texts(texts).items()
            print(
                "   ", {kind: f"{dropped(some, by_preset(language)):.0%}" for kind, some in kinds}
            )


def main() -> None:
    """Download, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where packages are kept")
    parser.add_argument("--explain", action="store_true", help="print the reasons, too")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="languages-"))
    download(folder)
    for backend in ("trafilatura", "resiliparse"):
        report(good_texts(folder, backend), backend, explain=given.explain)


if __name__ == "__main__":
    main()
