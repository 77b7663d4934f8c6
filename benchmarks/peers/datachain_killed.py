"""DataChain: the same script again, as its checkpoints ask for; the input is a saved dataset.

A checkpoint belongs to the path of a script, so that a copy beside the results is run as a file.
"""

import os
import runpy
import sys
from pathlib import Path

from benchmarks.reporting import Stopwatch

if __name__ == "__main__":
    folder = Path(Stopwatch().specification["out"]) / "datachain"
    folder.mkdir(exist_ok=True)
    os.environ["DATACHAIN_ROOT_DIR"] = str(folder)
    os.environ["DATACHAIN_NO_ANALYTICS"] = "1"
    sys.argv[0] = str(Path(__file__).with_name("datachain_script.py"))
    runpy.run_path(sys.argv[0], run_name="__main__")
