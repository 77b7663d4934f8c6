"""Operators that hang until a test lets them go, and records for them."""

import asyncio
import threading
from typing import Any

from dagster_dataops.data import data_register

GROUP = "data.limits"
LIMIT = 1.5  # seconds; calls that do not hang must end sooner, on a busy machine too
RELEASE = threading.Event()  # ends the calls that hang


@data_register(GROUP, _timeout=LIMIT, _max_workers=3, _stop_after_failures=0)
def hangs(record):
    if record["hang"]:
        RELEASE.wait(30)
    return record


@data_register(GROUP, _timeout=LIMIT, _max_workers=3, _stop_after_failures=0)
async def hangs_async(record):
    if record["hang"]:
        await asyncio.sleep(30)
    return record


def hanging_in(mode: str, **given: Any) -> Any:
    return hangs_async(**given) if mode == "async" else hangs(_concurrency_mode=mode, **given)


def numbered(*hanging: int, count: int = 30) -> list[dict[str, Any]]:
    return [{"n": n, "hang": n in hanging} for n in range(count)]
