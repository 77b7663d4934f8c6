"""Debian's PostgreSQL, started by a test in a new folder."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.end_to_end.dagster_server import HANG_SECONDS, until

_PROGRAMS = ("initdb", "postgres", "pg_isready", "psql")


def programs() -> Path | None:
    """Return the folder of PostgreSQL's newest programs; ``None`` if there is none."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("initdb")
    if on_path is not None:
        folders.append(Path(on_path).parent)
    return next((f for f in folders if all((f / name).exists() for name in _PROGRAMS)), None)


def missing() -> str:
    """Return the missing part for a Dagster instance in PostgreSQL; empty if nothing is missing."""
    if programs() is None:
        return "there is no PostgreSQL (Debian: apt-get install postgresql)"
    if importlib.util.find_spec("dagster_postgres") is None:
        return "there is no dagster-postgres (pip install 'dagster-dataops[test]')"
    if os.getuid() == 0 and _user() is None:
        return "PostgreSQL does not run as root, and there is no user postgres"
    return ""


def _user() -> "pwd.struct_passwd | None":
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return None


class Postgres:
    """A server that listens only on a socket in its folder.

    Args:
        folder: A new folder with a short path, because the path of a socket must be short.
    """

    def __init__(self, folder: Path) -> None:
        found = programs()
        assert found is not None
        self._programs = found
        self.folder = folder
        self._as: dict[str, Any] = {}
        user = _user()
        if os.getuid() == 0 and user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        initdb = [found / "initdb", "-D", folder / "data", "-U", "dagster", "--no-sync"]
        subprocess.run(
            [*initdb, "--auth=trust", "--encoding=UTF8", "--locale=C"],
            cwd=folder,
            check=True,
            capture_output=True,
            **self._as,
        )
        self.process = self._started()
        try:
            until(self._answers, "PostgreSQL")
        except BaseException:
            self.stop()
            raise

    def _started(self) -> "subprocess.Popen[bytes]":
        options = ["-c", "listen_addresses=", "-c", "fsync=off", "-k", self.folder]
        with (self.folder / "log").open("wb") as log:
            return subprocess.Popen(
                [self._programs / "postgres", "-D", self.folder / "data", *options],
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                **self._as,
            )

    def _answers(self) -> bool:
        assert self.process.poll() is None, (self.folder / "log").read_text()
        asked = [self._programs / "pg_isready", "-q", "-h", self.folder, "-U", "dagster"]
        return subprocess.run(asked, check=False).returncode == 0

    @property
    def settings(self) -> str:
        """Return the storage of a Dagster instance in the form of ``dagster.yaml``."""
        url = f"postgresql+psycopg2://dagster@/postgres?host={self.folder}"
        return f"storage: {{postgres: {{postgres_url: '{url}'}}}}\n"

    def ask(self, query: str) -> str:
        """Return the output of ``psql``."""
        asked = [self._programs / "psql", "-h", self.folder, "-U", "dagster", "-Atc", query]
        return subprocess.run(
            [*asked, "postgres"], check=True, capture_output=True, text=True
        ).stdout.strip()

    def stop(self) -> None:
        """End it at once, with every connection."""
        self.process.send_signal(signal.SIGQUIT)  # without waiting for clients
        self.process.wait(HANG_SECONDS)
