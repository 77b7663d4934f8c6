"""Part files and reader of the mini data loader."""

from pathlib import Path

from dagster_dataops import PartFiles, parse_numbers
from dagster_dataops.pipelines.local_run import run_operator
from tests.registries import OperatorRegistry

EXAMPLE = Path(__file__).parents[2] / "examples" / "mini_data_loader"
NAMES = ("part-000", "part-001")
A = [(1.01, 2.02), (2.01, 4.02), (3.0, 6.05), (4.1, 8.205), (5, 10), (6, 12), (7, 14.2)]
A += [(8, 16.3), (9.1, 18.03)]
B = [*A[:2], (4.0, 8.05), A[3], (9, 18), *A[5:]]
PLACES = [(name, line) for name in NAMES for line in range(1, 10)]
ROWS = dict(zip(PLACES, [*A, *B], strict=True))

registry = OperatorRegistry(run_operator)


@registry("data.mini", columns={"values": list[float]})
class MiniReader(PartFiles):
    """Two numbers per line."""

    def parse(self, line):
        return {"values": parse_numbers(line, 2)}


def mini(folder=EXAMPLE, data_part_num=2, part_name_suffix_length=3, **options):
    """Return the reader of the document, with places, so that equal rows can be distinguished."""
    options = {"with_place": True} | options
    return MiniReader(
        folder, data_part_num, part_name_suffix_length=part_name_suffix_length, **options
    )


def places(records):
    """Return (file, line) of rows, or of batches."""
    found = []
    for record in records:
        if isinstance(record["file"], list):
            found += zip(record["file"], record["line"], strict=True)
        else:
            found.append((record["file"], record["line"]))
    return found


def write_parts(folder, *contents, name="part-{}"):
    folder.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(contents):
        text = content if isinstance(content, bytes) else content.encode()
        (folder / name.format(number)).write_bytes(text)
    return folder
