import pickle
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from dagster_dataops.foundation.concurrency.sent_code import pickled


def _made(path: Path) -> dict[str, object]:
    """Run a file as a script runs: its functions cannot be imported."""
    path.write_text(
        "def outer(value):\n"
        "    inner = lambda: 1 / value\n"
        "    return inner()\n"
        "class Divided:\n"
        "    def by(self, value):\n"
        "        return outer(value)\n"
    )
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(path.read_text(), path, "exec"), names)  # noqa: S102
    return names


@pytest.mark.parametrize("name", ["outer", "Divided"])
def test_code_that_is_sent_keeps_its_file_for_tracebacks(tmp_path: Path, name: str) -> None:
    path = tmp_path / "script.py"
    sent = pickle.loads(pickled(_made(path)[name]))
    with pytest.raises(ZeroDivisionError) as caught:
        (sent if name == "outer" else sent().by)(0)
    shown = "".join(traceback.format_exception(caught.value))
    assert f'File "{path}", line 2' in shown  # of the nested function, too
    assert "inner = lambda: 1 / value" in shown


def test_a_new_interpreter_runs_code_that_was_sent(tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(pickled(_made(tmp_path / "script.py")["outer"]))
    code = f"import pickle; print(pickle.load(open({str(tmp_path / 'sent')!r}, 'rb'))(4))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "0.25\n"
