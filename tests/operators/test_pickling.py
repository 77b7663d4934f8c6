"""Tests of operators that are sent to other processes."""

import subprocess
import sys
import textwrap
import threading

import pytest

from dagster_dataops import data_register
from dagster_dataops.errors import WorkerError
from tests.sent_operators import call, receive, ship


@data_register("data.shipped", _max_workers=3)
def importable(data: dict, mark="!"):
    data["text"] += mark
    return data


# The code of a worker that receives an operator: it has no access to the origin.
RECEIVE = """
import sys
from dagster_dataops.operators.pickling import receive
from dagster_dataops.operators.bound_methods import record_function
for path in sys.argv[1:]:
    operator = receive(open(path, "rb").read())
    print(record_function(operator)({"text": "a"})["text"], end=" ")
print(sorted({name.split(".")[0] for name in sys.modules} & {"dagster", "dagster_shared"}))
"""

SHIP = """
from dagster_dataops.operators.pickling import ship
for number, operator in enumerate(OPERATORS):
    with open(f"{number}.shipped", "wb") as file:
        file.write(ship(operator))
"""

STUB = "class AssetKey: pass\n\ndef asset(function): return function\n"


PASSING_UP = """
from dagster_dataops import data, data_register

class Ask(data_register.new_group("demo")):
    def __init__(self, mark="!", **kwargs):
        super().__init__(mark=mark * 2, **kwargs)

    def forward(self, data, mark="", **sent):
        data["text"] += mark + sent["temperature"]
        return data

OPERATORS = [data.demo.Ask(mark="?", temperature="hot")]
"""


@pytest.fixture
def received(tmp_path, run_python):
    """Ship ``OPERATORS`` of a script and return their results in a new interpreter."""

    def receive_in_worker(source: str, *, pythonpath: str = "") -> str:
        run_python(textwrap.dedent(source) + SHIP, PYTHONPATH=pythonpath)
        shipped = sorted(map(str, tmp_path.glob("*.shipped")))
        worker = [sys.executable, "-c", RECEIVE, *shipped]
        finished = subprocess.run(worker, cwd="/", capture_output=True, text=True, check=False)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout.strip()

    return receive_in_worker


OPERATORS_OF_A_SCRIPT = """
from dagster_dataops import data, data_register
demo = data_register.new_group("demo")
MARK = "!"

def helper(text):
    return text + MARK

@data_register("data.demo")
def function(data: dict, key="text"):
    data[key] = helper(data[key])
    return data

class Step(demo):
    def __init__(self, mark="1", **kwargs):
        super().__init__(**kwargs)
        self.mark = mark

    def forward(self, data, times=1):
        data["text"] += self.mark * times
        return data

class Child(Step):
    def forward(self, data, times=1):
        return super().forward(data, times)

def closure(mark):
    @data_register("data.demo")
    def enclosed(data: dict):
        data["text"] += mark
        return data

    return enclosed

@data_register("data.demo")
class Plain:
    def forward(self, data):
        return function(data)

@data_register("data.demo")
def nested(data: dict):
    return function(function(data))

OPERATORS = [
    data.demo.function(),
    data.demo.Step(mark="?", times=2),
    data.demo.Child(mark="c"),
    closure("~")(),
    data.demo.Plain(),
    data.demo.nested(),
]
"""


@pytest.mark.slow
def test_operators_of_a_script_reach_a_fresh_interpreter(received):
    assert received(OPERATORS_OF_A_SCRIPT) == "a! a?? ac a~ a! a!! []"


@pytest.mark.slow
def test_options_passed_to_the_base_class_reach_a_new_interpreter(received):
    assert received(PASSING_UP) == "a??hot []"


@pytest.mark.slow
def test_dagster_in_the_script_does_not_reach_the_worker(received):
    source = "import dagster as dg\nfrom dagster import AssetKey\n" + OPERATORS_OF_A_SCRIPT

    assert received(source) == "a! a?? ac a~ a! a!! []"


WITH_DAGSTER = """
import dagster as dg
from dagster import AssetKey
"""


@pytest.mark.parametrize(
    ("package", "init", "start"),
    [("", "", WITH_DAGSTER), ("package.", "", WITH_DAGSTER), ("package.", WITH_DAGSTER, "")],
)
@pytest.mark.slow
def test_a_module_that_imports_dagster_or_whose_package_does_is_sent_by_value(
    tmp_path, received, package, init, start
):
    (tmp_path / "dagster.py").write_text(STUB)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text(init)
    module = tmp_path / f"{package.replace('.', '/')}steps.py"
    module.write_text(start + OPERATORS_OF_A_SCRIPT)

    assert received(f"from {package}steps import OPERATORS") == "a! a?? ac a~ a! a!! []"


@pytest.mark.slow
def test_a_module_outside_the_import_path_is_sent_by_value(tmp_path, received):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "steps.py").write_text(OPERATORS_OF_A_SCRIPT)
    source = """
    import importlib.util, sys
    spec = importlib.util.spec_from_file_location("steps", "hidden/steps.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["steps"] = module
    spec.loader.exec_module(module)
    OPERATORS = module.OPERATORS
    """

    assert received(source) == "a! a?? ac a~ a! a!! []"


def test_an_importable_operator_is_sent_by_reference():
    payload = ship(importable(mark="?"))

    assert b"importable" in payload
    assert len(payload) < 2000


def test_options_settings_and_identity_arrive():
    operator = importable(mark="?", _save_data=False)

    again = receive(ship(operator))

    assert call(again, {"text": "a"}) == {"text": "a?"}
    assert again.__dataops__.resolved == operator.__dataops__.resolved
    assert again.__dataops__.options_digest == operator.__dataops__.options_digest
    assert again.__dataops__.spec.code_version == operator.__dataops__.spec.code_version
    assert again.__dataops__.spec.qualified_name == "shipped.importable"


def test_attributes_set_by_init_arrive_without_running_it_again(registry):
    class Step(registry.new_group("shipped")):
        calls = 0

        def __init__(self, words):
            type(self).calls += 1
            self.words = set(words)

        def forward(self, data):
            return data if data["text"] in self.words else []

    again = receive(ship(Step(words=["a", "b"])))

    assert call(again, {"text": "a"}) == {"text": "a"}
    assert call(again, {"text": "c"}) == []


@pytest.mark.parametrize("attribute", [threading.Lock(), (n for n in range(3))])
def test_an_operator_that_cannot_be_sent_is_refused_with_a_remedy(registry, attribute):
    class Step(registry.new_group("shipped")):
        def __init__(self):
            self.held = attribute

        def forward(self, data):
            return data

    with pytest.raises(WorkerError, match=r"shipped\.Step.*inside forward, or use .*'thread'"):
        ship(Step())


def test_annotations_that_workers_do_not_have_are_left_behind(registry):
    class Local:
        lock = threading.Lock()

    @registry("data.shipped")
    def step(data: dict, kind: Local = None):
        return data

    step.function.__annotations__ = {}
    assert receive(ship(step.operator())).__dataops__.spec.options[0].name == "kind"
