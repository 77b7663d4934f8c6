"""`FileMapper`: the bytes of files by name."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dagster_dataops import FileMapper, read_sequence
from dagster_dataops.errors import (
    PathEscapeError,
    StreamArgumentError,
    StreamSourceError,
    UnfitRecordError,
)
from tests.each import each

OPEN = Path("/proc/self/fd")  # on Linux
CONTENT = bytes(range(200))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.bin").write_bytes(CONTENT)
    return tmp_path


@each(
    "case",
    [
        ("x.bin", CONTENT),
        ("x.bin:100", CONTENT[100:]),
        (" x.bin : 100 : 20 ", CONTENT[100:120]),
        ("x.bin:200", b""),
        ("x.bin:0:0", b""),
        ("./x.bin:3:1", CONTENT[3:4]),
    ],
)
def test_a_name_chooses_the_bytes(folder, case):
    name, wanted = case
    mapper = FileMapper(folder / "a")
    for _ in range(2):
        assert mapper(name) == {"path": name, "data": wanted}


@each("name", ["", " ", ":", "x.bin:", "x.bin::3", ":1", "x.bin:1:2:3"])
def test_a_malformed_name_is_refused(folder, name):
    with pytest.raises(UnfitRecordError, match="is malformed; it must be name, name:offset"):
        FileMapper(folder / "a")(name)


@each("part", ["ab", "12a", "-1", "1 2", "1.5", "²", "99999999999999999999"])
def test_a_part_is_two_numbers(folder, part):
    mapper = FileMapper(folder / "a")
    with pytest.raises(UnfitRecordError, match="the offset of .* must be a number below"):
        mapper(f"x.bin:{part}")
    with pytest.raises(UnfitRecordError, match="the size of .* must be a number below"):
        mapper(f"x.bin:1:{part}")


def test_a_part_behind_the_end_is_refused(folder):
    mapper = FileMapper(folder / "a")
    for part in ("201", "190:11"):
        with pytest.raises(UnfitRecordError, match="ends at byte 201, and the file has 200 bytes"):
            mapper(f"x.bin:{part}")


@each("given", [None, 3, b"x.bin"])
def test_a_name_is_a_text(folder, given):
    with pytest.raises(UnfitRecordError, match="takes the name of a file, a text; got a"):
        FileMapper(folder / "a")(given)


def test_names_do_not_leave_the_folder(folder):
    (folder / "secret").write_text("s")
    mapper = FileMapper(folder / "a")
    for name in ("../secret", "b/../../secret", str(folder / "secret")):
        with pytest.raises(PathEscapeError):
            mapper(name)
    assert mapper(str(folder / "a" / "x.bin"))["data"] == CONTENT
    assert FileMapper()(str(folder / "secret"))["data"] == b"s"


def test_a_link_in_the_folder_may_lead_out(folder):
    (folder / "far").write_text("f")
    (folder / "a" / "link").symlink_to(folder / "far")
    assert FileMapper(folder / "a")("link")["data"] == b"f"


def test_a_missing_file_is_named(folder):
    with pytest.raises(StreamSourceError, match=r"a/none.*No such file"):
        FileMapper(folder / "a")("none")


def test_only_the_last_files_stay_open(folder):
    for number in range(5):
        (folder / str(number)).write_text(str(number))
    mapper = FileMapper(folder, cached_fd_count=2)
    before = len(list(OPEN.iterdir())) if OPEN.exists() else 0
    for number in [0, 1, 2, 3, 4, 0, 4]:
        assert mapper(str(number))["data"] == str(number).encode()
    if before:
        assert len(list(OPEN.iterdir())) == before + 2
    mapper.close()
    assert mapper("3")["data"] == b"3"
    with pytest.raises(StreamArgumentError, match="cached_fd_count"):
        FileMapper(cached_fd_count=-1)


def test_it_works_in_threads_and_processes(folder):
    mapper = FileMapper(folder / "a", 1)
    (folder / "a" / "y.bin").write_bytes(CONTENT[::-1])
    names = [f"{name}.bin:{at}:1" for at in range(50) for name in "xy"]
    wanted = [mapper(name)["data"] for name in names]
    with ThreadPoolExecutor(4) as pool:
        assert [one["data"] for one in pool.map(mapper, names)] == wanted
    assert pickle.loads(pickle.dumps(mapper))(names[0])["data"] == wanted[0]
    stream = read_sequence(names).map(mapper).workers(1)
    assert [one["data"] for one in stream] == wanted
