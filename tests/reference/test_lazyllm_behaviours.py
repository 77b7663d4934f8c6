"""Tests of the behaviour that LazyLLM's own tests check, without the defects of its data module."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from dagster_dataops import config, data, data_register, pipeline
from dagster_dataops.errors import InputError, WorkerError
from tests.faults.crashing import wait_until
from tests.subprocesses import killed_at_exit

GROUP = "lazyllm_behaviours"
MODES = ["single", "thread", "process"]
group = data_register.new_group(GROUP)


@data_register(f"data.{GROUP}", rewrite_func="forward_batch_input")
def build_pre_suffix(data: list[dict], input_key="content", prefix="", suffix=""):
    for item in data:
        item[input_key] = f"{prefix}{item.get(input_key, '')}{suffix}"
    return data


@data_register(f"data.{GROUP}", _concurrency_mode="thread")
def process_uppercase(data: dict, input_key="content"):
    data[input_key] = data.get(input_key, "").upper()
    return data


class AddSuffix(group):
    def __init__(self, suffix, input_key="content", **kwargs):
        super().__init__(**{"_max_workers": 32, "_concurrency_mode": "process"} | kwargs)
        self.suffix = suffix
        self.input_key = input_key

    def forward(self, data):
        data[self.input_key] = f"{data.get(self.input_key, '')}{self.suffix}"
        return data


@data_register(f"data.{GROUP}")
def rich_content(data: dict, input_key="content"):
    content = data.get(input_key, "")
    parts = [f"{content} - part {number}" for number in (1, 2)]
    return [data, *({**data, input_key: part} for part in parts)]


@data_register(f"data.{GROUP}", _concurrency_mode="single")
def error_prone_op(data: dict, input_key="content"):
    content = data.get(input_key, "")
    if content == "fail":
        raise ValueError("Intentional error for testing.")
    data[input_key] = f"Processed: {content}"
    return data


class FieldExtractor(group):
    def __init__(self, model, **kwargs):
        super().__init__(**kwargs)
        self.model = model

    def forward(self, data):
        data["structured_data"] = self.model(data["content"])
        return data


def contents(records: list[dict]) -> list[str]:
    return [record["content"] for record in records]


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# ---------------------------------------------------------------- LazyLLM's own tests


def test_a_full_operator_keeps_the_order():
    operator = build_pre_suffix(prefix="Hello, ", suffix="!")

    result = operator([{"content": "world"}, {"content": "python"}])
    assert contents(result) == ["Hello, world!", "Hello, python!"]


def test_4000_records_in_threads():
    operator = process_uppercase()
    records = [{"content": f"text {number}"} for number in range(4000)]

    assert operator.__dataops__.resolved.concurrency_mode == "thread"
    assert operator.__dataops__.resolved.max_workers >= 1
    assert contents(operator(records)) == [f"TEXT {number}" for number in range(4000)]


def test_4000_records_in_32_processes_are_4000_lines(root):
    operator = AddSuffix(suffix="!")
    records = [{"content": f"text {number}", "id": number} for number in range(4000)]

    assert operator.__dataops__.resolved.max_workers == 32
    assert AddSuffix(suffix="!", _max_workers=2).__dataops__.resolved.max_workers == 2
    result = operator(records)
    assert contents(result) == [f"text {number}!" for number in range(4000)]
    assert lines(root / "AddSuffix" / "AddSuffix_results.jsonl") == result


def test_one_record_becomes_three_in_order():
    assert contents(rich_content()({"content": "a"})) == ["a", "a - part 1", "a - part 2"]


def test_set_output_to_a_folder_gives_an_existing_jsonl_file(tmp_path):
    path = process_uppercase().set_output(str(tmp_path / "out"))([{"content": "a"}])

    assert isinstance(path, str)
    assert path.endswith(".jsonl")
    assert lines(Path(path)) == [{"content": "A"}]


@pytest.mark.parametrize("mode", MODES)
def test_a_failing_record_goes_to_the_error_file_and_the_others_continue(root, mode):
    operator = error_prone_op(_concurrency_mode=mode)

    result = operator([{"content": "ok1"}, {"content": "fail"}, {"content": "ok2"}])

    assert contents(result) == ["Processed: ok1", "Processed: ok2"]
    [error] = lines(root / "error_prone_op" / "error_prone_op_error.jsonl")
    assert error["input"] == {"content": "fail"}
    assert error["message"] == "Intentional error for testing."


def test_a_slow_model_in_threads_loses_nothing():
    def model(text: str) -> dict:
        time.sleep(0.001 * (len(text) % 4))
        return {"length": len(text)}

    records = [{"content": "x" * (number % 7), "id": number} for number in range(500)]
    operator = FieldExtractor(model=model, _concurrency_mode="thread", _max_workers=64)

    result = operator(records)

    assert [record["id"] for record in result] == list(range(500))
    assert all(r["structured_data"] == {"length": len(r["content"])} for r in result)


def test_the_demo_pipeline_gives_its_six_records_in_order():
    with pipeline() as ppl:
        ppl.pre_suffix = build_pre_suffix(prefix="Hello, ", suffix="!")
        ppl.uppercase = process_uppercase()
        ppl.suffix = AddSuffix(suffix="!!!", _max_workers=2)
        ppl.rich = rich_content()

    first = "HELLO, LAZYLLM!!!!"
    expected = [first, f"{first} - part 1", f"{first} - part 2"]
    assert contents(ppl([{"content": "lazyllm"}] * 2)) == expected * 2


def test_an_operator_with_a_model_stores_its_answers(root):
    def model(text: str) -> dict:
        return {"name": text}

    result = FieldExtractor(model=model)({"content": "a"})

    assert result == [{"content": "a", "structured_data": {"name": "a"}}]
    assert lines(root / "FieldExtractor" / "FieldExtractor_results.jsonl") == result


def test_forward_and_forward_batch_input_can_be_called_directly():
    assert AddSuffix(suffix="!").forward({"content": "a"}) == {"content": "a!"}
    assert build_pre_suffix([{"content": "a"}], suffix="?") == [{"content": "a?"}]


# ---------------------------------------------------------------- definition of operators


class BatchDedup(group):
    def __init__(self, key="content", **kwargs):
        super().__init__(rewrite_func="forward_batch_input", **kwargs)
        self.key = key

    def forward_batch_input(self, data, **kwargs):
        assert not kwargs
        return list({record[self.key]: record for record in data}.values())


def test_a_class_may_name_its_method_to_the_base_class():
    records = [{"content": "a"}, {"content": "b"}, {"content": "a"}]

    assert contents(BatchDedup()(records)) == ["a", "b"]
    every = {"_save_data": False, "_ignore_errors": False, "_max_workers": 0}
    assert contents(BatchDedup(_concurrency_mode="single", **every)(records)) == ["a", "b"]


class AskModel:
    def __init__(self, model, prompt=None, max_retries=3, **kwargs):
        super().__init__(_concurrency_mode="thread", **kwargs)
        self.model, self.prompt, self.max_retries = model, prompt, max_retries

    def forward(self, data, **kwargs):
        return {**data, "sent": kwargs, "answer": self.model(data["content"])}


class Extract(AskModel, group):
    def __init__(self, model, prompt=None, input_keys=None, **kwargs):
        super().__init__(model, prompt, **kwargs)
        self.input_keys = input_keys


def test_options_that_a_mixin_s_forward_takes_by_kwargs_reach_it():
    operator = Extract(model=str.upper, max_retries=1, temperature=0.7, _max_workers=0)

    assert operator({"content": "a"}) == [
        {"content": "a", "sent": {"temperature": 0.7}, "answer": "A"}
    ]
    assert operator.max_retries == 1
    assert 32 <= operator.__dataops__.resolved.max_workers <= 128


def test_a_pipeline_may_hold_pipelines_and_functions():
    with pipeline() as cleaning:
        cleaning.uppercase = process_uppercase()
        cleaning.dedup = BatchDedup()
    with pipeline() as ppl:
        ppl.clean = cleaning
        ppl.first = lambda records: records[:1]

    assert contents(ppl([{"content": "a"}, {"content": "A"}, {"content": "b"}])) == ["A"]


def test_forward_of_a_function_operator_is_the_function_with_its_options():
    operator = getattr(data, GROUP).process_uppercase(input_key="title")

    assert operator.forward({"title": "a"}) == {"title": "A"}


@data_register.forward_batch_input(f"data.{GROUP}")
def keep_two(data: list[dict]):
    return data[:2]


def test_the_registrar_has_a_method_for_operators_of_all_records():
    assert contents(keep_two()([{"content": text} for text in "abc"])) == ["a", "b"]


# ---------------------------------------------------------------- D1, D2: one folder a class


def test_d1_one_operator_twice_in_a_pipeline_keeps_the_number_of_records():
    with pipeline() as ppl:
        ppl.one = AddSuffix(suffix="-a", _max_workers=2)
        ppl.two = AddSuffix(suffix="-b", _max_workers=2)

    assert contents(ppl([{"content": text} for text in "xyz"])) == ["x-a-b", "y-a-b", "z-a-b"]


@pytest.mark.parametrize("operator", [process_uppercase(), build_pre_suffix()], ids=repr)
def test_d1_a_second_call_returns_the_records_of_the_second_call(operator, root):
    operator([{"content": "A"}])

    assert operator([{"content": "B"}]) == [{"content": "B"}]
    name = operator.__dataops__.spec.name
    assert lines(root / name / f"{name}_results.jsonl") == [{"content": "B"}]


def test_d2_operators_of_one_name_in_two_groups_do_not_mix(registry):
    def step(data):
        data["content"] += mark
        return data

    mark = "1"
    one = registry("data.one")(step)
    with config.temporary(data_process_resume=True):
        assert contents(one.operator()([{"content": "a"}])) == ["a1"]
        mark = "2"
        two = registry("data.two")(step)
        assert contents(two.operator()([{"content": "b"}])) == ["b2"]


def test_d2_constructing_a_second_instance_deletes_nothing(root):
    process_uppercase()([{"content": "a"}])

    process_uppercase()
    process_uppercase(input_key="other")

    stored = root / "process_uppercase" / "process_uppercase_results.jsonl"
    assert lines(stored) == [{"content": "A"}]


TWO_PROCESSES = """
import json, sys, time
from dagster_dataops import data_register
from dagster_dataops.errors import FolderLockedError, InputError

@data_register("data.two", _concurrency_mode="thread", _max_workers=8)
def step(data: dict):
    time.sleep(0.002)
    return data

records = [{"who": sys.argv[1], "n": n} for n in range(300)]
try:
    assert step()(records) == records
    print("ours")
except (FolderLockedError, InputError) as error:
    print("refused")
"""


@pytest.mark.slow
def test_d2_two_processes_on_one_root_never_return_each_others_records(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(TWO_PROCESSES)
    started = [
        subprocess.Popen(
            [sys.executable, str(script), who], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        for who in "AB"
    ]
    answers = [process.communicate()[0].strip() for process in started]

    assert [process.returncode for process in started] == [0, 0]
    assert Counter(answers) in (Counter(ours=2), Counter(ours=1, refused=1))
    stored = lines(tmp_path / "data_pipeline_res" / "step" / "step_results.jsonl")
    assert len(stored) == 300
    assert len({record["who"] for record in stored}) == 1


# ---------------------------------------------------------------- D3, D4: resume


@pytest.fixture
def resume():
    with config.temporary(data_process_resume=True):
        yield


@pytest.mark.usefixtures("resume")
@pytest.mark.parametrize("mode", MODES)
def test_d3_changed_records_are_worked_on_again(mode):
    operator = process_uppercase(_concurrency_mode=mode)
    whole = build_pre_suffix(suffix="!")

    for texts in (["a", "b"], ["c", "d"], ["new", "a", "b"], []):
        assert contents(operator([{"content": t} for t in texts])) == [t.upper() for t in texts]
        assert contents(whole([{"content": t} for t in texts])) == [f"{t}!" for t in texts]


@pytest.mark.slow
@pytest.mark.usefixtures("resume")
def test_d3_a_changed_option_is_seen():
    for suffix in "!?!":
        operator = AddSuffix(suffix=suffix, _max_workers=2)
        assert contents(operator([{"content": "a"}])) == [f"a{suffix}"]


@pytest.mark.usefixtures("resume")
def test_d3_a_change_upstream_reaches_those_below():
    def run(suffix: str) -> list[str]:
        with pipeline() as ppl:
            ppl.suffix = AddSuffix(suffix=suffix, _max_workers=2)
            ppl.upper = process_uppercase()
        return contents(ppl([{"content": "a"}]))

    assert [run("x"), run("y"), run("x")] == [["AX"], ["AY"], ["AX"]]


@pytest.mark.usefixtures("resume")
def test_d3_changed_code_is_seen(registry):
    def run(operator) -> list[str]:
        return contents(operator.operator(_concurrency_mode="single")([{"content": "a"}]))

    def define(mark: str):
        @registry("data.edited")
        def step(data: dict):
            data["content"] += mark
            return data

        return step

    assert [run(define("1")), run(define("2")), run(define("1"))] == [["a1"], ["a2"], ["a1"]]


@pytest.mark.usefixtures("resume")
def test_d4_failed_records_are_tried_again_when_the_code_is_fixed(root, registry):
    def define(mended: bool):
        @registry("data.mended", _concurrency_mode="single")
        def step(data: dict):
            if data["content"] == "bad" and not mended:
                raise ValueError
            return data

        return step.operator()

    records = [{"content": "ok"}, {"content": "bad"}]
    assert contents(define(mended=False)(records)) == ["ok"]
    assert contents(define(mended=True)(records)) == ["ok", "bad"]
    assert not (root / "step" / "step_error.jsonl").exists()


# ---------------------------------------------------------------- D5: lost results


@data_register(f"data.{GROUP}")
def unwritable(data: dict, kind="set"):
    if data["n"] == 1:
        data["value"] = {
            "set": {1},
            "date": date(2024, 1, 1),
            "float32": np.float32(1.5),
            "bytes": b"a",
            "surrogate": "\ud800",
            "nan": float("nan"),
            "lock": threading.Lock(),
        }[kind]
    return data


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["set", "date", "float32", "bytes", "surrogate", "nan", "lock"])
def test_d5_a_result_that_json_cannot_hold_is_an_error_row_never_lost(root, mode, kind):
    operator = unwritable(kind=kind, _concurrency_mode=mode, _max_workers=2)

    assert operator([{"n": 0}, {"n": 1}, {"n": 2}]) == [{"n": 0}, {"n": 2}]
    [error] = lines(root / "unwritable" / "unwritable_error.jsonl")
    assert (error["index"], error["input"]) == (1, {"n": 1})
    assert "key 'value'" in error["message"]


@pytest.mark.parametrize("mode", MODES)
def test_d5_the_counts_always_add_up(root, mode):
    @data_register(f"data.{GROUP}")
    def sieve(data: dict):
        if data["n"] % 3 == 0:
            return []
        if data["n"] % 3 == 1:
            raise ValueError
        return [data, data]

    sieve.operator(_concurrency_mode=mode, _max_workers=2)([{"n": n} for n in range(90)])

    manifest = json.loads((root / "sieve" / "sieve_results.jsonl.json").read_text())
    counts = {name: manifest[name] for name in ("rows_in", "rows_out", "dropped", "failed")}
    assert counts == {"rows_in": 90, "rows_out": 60, "dropped": 30, "failed": 30}


# ---------------------------------------------------------------- D8, D9, D13: crashes


INTERRUPTIBLE = textwrap.dedent(
    """
    import signal, sys, time
    from pathlib import Path
    from dagster_dataops import config, data_register
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored below a background job
    config.data_process_resume = True

    @data_register("data.crashing", _concurrency_mode=sys.argv[1], _max_workers=2)
    def step(data: dict):
        with open("calls", "a") as file:
            file.write(f"{data['n']}\\n")
        time.sleep(float(Path("pace").read_text()))
        return data

    records = [{"n": n} for n in range(60)]
    result = step()(records)
    assert result == records, result
    """
)


def start(tmp_path: Path, mode: str) -> subprocess.Popen:
    (tmp_path / "script.py").write_text(INTERRUPTIBLE)
    return subprocess.Popen(
        [sys.executable, "script.py", mode], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )


def wait_for_calls(tmp_path: Path, count: int) -> None:
    calls = tmp_path / "calls"
    wait_until(lambda: calls.exists() and len(calls.read_text().splitlines()) >= count, 20, "calls")


def tear_last_lines(tmp_path: Path) -> None:
    checkpoints = tmp_path / "data_pipeline_res" / "step" / "checkpoints"
    torn = [path for path in checkpoints.rglob("*") if path.is_file() and path.stat().st_size]
    assert torn
    for path in torn:
        if path.suffix != ".json":
            os.truncate(path, path.stat().st_size - 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "torn"), [("single", False), ("thread", False), ("thread", True), ("process", False)]
)
def test_d8_d13_an_interrupt_and_a_torn_checkpoint_cost_no_record(tmp_path, mode, torn):
    (tmp_path / "pace").write_text("0.05")
    with killed_at_exit(start(tmp_path, mode)) as process:
        wait_for_calls(tmp_path, 12)
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate()[1]
    if torn:
        tear_last_lines(tmp_path)

    (tmp_path / "pace").write_text("0")
    again = start(tmp_path, mode)
    assert "Traceback" not in again.communicate()[1]
    assert again.returncode == 0

    calls = Counter((tmp_path / "calls").read_text().split())
    assert set(calls) == {str(n) for n in range(60)}
    assert torn or sum(calls.values()) <= 60 + 4


FULL_DISK = """
import resource
from dagster_dataops import config, data_register
from dagster_dataops.errors import StorageError

@data_register("data.full", _concurrency_mode="MODE", _max_workers=2)
def step(data: dict):
    return {"text": "x" * 1000, "n": data["n"]}

import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
config.data_process_resume = True
records = [{"n": n} for n in range(1000)]
before = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
try:
    step()(records)
except StorageError as error:
    print(error.reason)
resource.setrlimit(resource.RLIMIT_FSIZE, before)
assert [r["n"] for r in step()(records)] == list(range(1000))
"""


@pytest.mark.parametrize("mode", MODES)
def test_d9_a_failing_disk_is_an_error_and_the_run_resumes_later(run_python, mode):
    assert "File too large" in run_python(FULL_DISK.replace("MODE", mode))


# ---------------------------------------------------------------- D10, D11, D14


@pytest.mark.parametrize("mode", MODES)
def test_d10_a_filter_drops_by_the_empty_list_and_keeps_by_none(registry, mode):
    @registry("data.filters")
    def even(data: dict):
        return None if data["n"] % 2 == 0 else []

    operator = even.operator(_concurrency_mode=mode)
    assert operator([{"n": n} for n in range(4)]) == [{"n": 0}, {"n": 2}]


class Locked(group):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.lock = threading.Lock()
        self.function = lambda text: text.upper()

    def forward(self, data):
        with self.lock:
            data["content"] = self.function(data["content"])
        return data


@pytest.mark.parametrize("mode", MODES)
def test_d11_an_operator_that_holds_a_lock_and_a_lambda_loses_no_record(mode):
    assert Locked(_concurrency_mode=mode)([{"content": "a"}]) == [{"content": "A"}]


@pytest.fixture
def second_thread():
    """A process with a second thread is not forked: operators are sent to workers instead."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    yield
    done.set()
    thread.join()


@pytest.mark.usefixtures("second_thread")
def test_d11_an_operator_that_cannot_be_sent_is_refused_with_a_remedy():
    with pytest.raises(WorkerError, match="use _concurrency_mode='thread'"):
        Locked()([{"content": "a"}])


def local_operators(registry):
    class Local(registry.new_group("local")):
        def forward(self, data):
            data["content"] += mark
            return data

    @registry("data.local")
    def closure(data: dict):
        data["content"] += mark
        return data

    mark = "!"
    return [Local(), closure.operator()]


def test_d11_local_operators_work_in_forked_workers(registry):
    for operator in local_operators(registry):
        assert operator([{"content": "a"}]) == [{"content": "a!"}]


@pytest.mark.slow
@pytest.mark.usefixtures("second_thread")
def test_d11_local_operators_work_in_fresh_workers(registry):
    for operator in local_operators(registry):
        assert operator([{"content": "a"}]) == [{"content": "a!"}]


@pytest.mark.parametrize("mode", MODES)
def test_d14_results_are_in_input_order_for_any_finishing_order(registry, mode):
    @registry("data.order")
    def step(data: dict):
        time.sleep(0.02 if data["n"] % 4 == 0 else 0)
        return [data] * (data["n"] % 3)

    records = [{"n": n} for n in range(40)]
    operator = step.operator(_concurrency_mode=mode, _max_workers=4)
    assert operator(records) == [r for r in records for _ in range(r["n"] % 3)]


# ---------------------------------------------------------------- other traps


def test_a_path_of_no_file_is_an_error_not_a_record():
    with pytest.raises(InputError, match="there is no such file"):
        process_uppercase()("missing.jsonl")
