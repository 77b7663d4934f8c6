"""Tests of the samples of OneFlow's custom data loader document, in their intended form.

The C++ parts, the reader's ``Next`` and ``Parse`` and the decoder's loop, are methods here. The
call that a user writes is the document's, except for the import.
"""

from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "mini_data_loader"

REGISTRATION = """
from dagster_dataops import PartFiles, data, data_register, parse_numbers

@data_register("data.mini", columns={"values": list[float]})
class MiniReader(PartFiles):
    def parse(self, line):
        return {"values": parse_numbers(line, 2)}

@data_register("data.mini", reads={"values": list[list[float]]}, columns=["x", "y"],
               _concurrency_mode="thread")
def MiniDecoder(batch):
    return {"x": [row[0] for row in batch["values"]], "y": [row[1] for row in batch["values"]]}
"""
USE = """
batch_size = 2
miniRecord = MiniReader(
    "./",
    batch_size=batch_size,
    data_part_num=2,
    part_name_suffix_length=3,
    random_shuffle=True,
    shuffle_after_epoch=True,
)
batches = MiniDecoder()(miniRecord)
x = [number for batch in batches for number in batch["x"]]
y = [number for batch in batches for number in batch["y"]]
print(len(batches), sorted(zip(x, y))[:3], len(set(zip(x, y))))
"""
ONE_FILE = """
miniRecord = MiniReader("./", batch_size=2, data_part_num=1, part_name_suffix_length=3)
for batch in MiniDecoder()(miniRecord):
    print(batch["x"], batch["y"])
"""
NEXT_AND_PARSE = """
from dagster_dataops import Reader, data, data_register
from dagster_dataops.testing import assert_resumes_anywhere

@data_register("data.mini")
class MiniReader(Reader):
    def __init__(self, data_dir: str, data_part_num: int):
        self.paths = [f"{data_dir}/part-{number:03}" for number in range(data_part_num)]

    def read_from(self, position):
        file, line = position or [0, 0]
        for number in range(file, len(self.paths)):
            with open(self.paths[number]) as lines:
                for passed, text in enumerate(lines.read().splitlines()[line:], line + 1):
                    yield text, [number, passed]
            line = 0

    def parse(self, text):
        first, second = text.split(",")
        return {"x": float(first), "y": float(second)}

reader = data.mini.MiniReader(data_dir=".", data_part_num=2)
assert_resumes_anywhere(reader.stream)
print(len(reader()), reader()[8:10])
"""
MISSING = """
from dagster_dataops.errors import OperatorOptionError, StreamSourceError

try:
    MiniReader(data_part_num=2)
except OperatorOptionError as error:
    print(error)
try:
    MiniReader("./", data_part_num=2)()
except StreamSourceError as error:
    print(error)
"""


def test_the_call_of_the_document_reads_both_files(run_python, tmp_path):
    printed = run_python(beside_the_files(f"{REGISTRATION}{USE}", tmp_path))

    assert printed.strip() == "9 [(1.01, 2.02), (1.01, 2.02), (2.01, 4.02)] 11"


def test_the_decoder_splits_the_columns_of_a_batch(run_python, tmp_path):
    lines = run_python(beside_the_files(f"{REGISTRATION}{ONE_FILE}", tmp_path)).splitlines()

    assert lines[0] == "[1.01, 2.01] [2.02, 4.02]"
    assert lines[-1] == "[9.1] [18.03]"
    assert len(lines) == 5


def test_next_and_parse_make_a_reader_that_resumes_at_any_position(run_python, tmp_path):
    printed = run_python(beside_the_files(NEXT_AND_PARSE, tmp_path))

    assert printed.strip() == "18 [{'x': 9.1, 'y': 18.03}, {'x': 1.01, 'y': 2.02}]"


def test_a_missing_attribute_or_file_is_named(run_python, tmp_path):
    first, second = run_python(beside_the_files(f"{REGISTRATION}{MISSING}", tmp_path)).splitlines()

    assert first.endswith("mini.MiniReader: option 'data_dir' is required and was not given")
    assert "part-0, part-1" in second
    assert "part_name_suffix_length=3" in second


def beside_the_files(text: str, folder: Path) -> str:
    return (
        f"import os\nfrom dagster_dataops import config\n"
        f"config.data_process_path = {str(folder / 'results')!r}\n"
        f"os.chdir({str(EXAMPLE)!r})\n{text}"
    )
