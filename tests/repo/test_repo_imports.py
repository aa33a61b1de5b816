"""Who imports whom, and what an import costs."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_imports_point_one_way() -> None:
    """The contracts on the direction of imports are kept."""
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [str(lint), "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout


def list_judging(text: str) -> set[str]:
    """Return what a module takes from other rooms that only who judges needs."""
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    return names & {
        "reassure_spec.clauses.clause",
        "reassure_spec.clauses.checks",
        "reassure_model.outcome.Rejected",
    }


def test_gate_drives_and_the_judge_judges() -> None:
    """No module of the gate carries a clause out, or says how one is broken."""
    gate = ROOT / "conformance/reassure_conformance/gate"
    found = {path.name: list_judging(path.read_text("utf-8")) for path in gate.rglob("*.py")}
    assert len(found) > 20
    assert {name: taken for name, taken in found.items() if taken} == {}
    assert list_judging("from reassure_spec.clauses import load_clauses, clause") != set()


def load_modules(code: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter holds after running the code."""
    report = f"import sys, json\n{code}\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True, timeout=60
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_model_needs_spec_and_standard_library_only() -> None:
    """Importing every module of the model loads nothing but the spec and the standard library."""
    room = ROOT / "model"
    names = [path.relative_to(room).with_suffix("") for path in room.rglob("*.py")]
    code = "\n".join(f"import {'.'.join(name.parts)}" for name in names)
    before, after = load_modules(""), load_modules(code)
    foreign = {name for name in after - before if name not in sys.stdlib_module_names}
    assert foreign == {"reassure_model", "reassure_spec"}


@pytest.mark.parametrize(
    "room", ["spec", "zookeeper", "model", "proofs", "judge", "controller", "pipeline"]
)
def test_import_of_room_is_light(room: str) -> None:
    """Importing a room loads none of the heavy libraries; they are loaded where they are used."""
    heavy = {"z3", "pyspark", "pyarrow", "hypothesis", "rich", "jsonschema", "pandas", "numpy"}
    assert load_modules(f"import reassure_{room}") & heavy == set()


def test_help_loads_no_heavy_library() -> None:
    """Asking the command for help loads click, our own command lines, and no other library."""
    code = (
        "from reassure_conformance.cli import main\n"
        "sys.argv = ['reassure', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code"
    )
    foreign = load_modules(code) - load_modules("") - sys.stdlib_module_names
    assert foreign == {"click", "reassure_conformance", "reassure_lab", "reassure_spec"}
    explain = "from reassure_conformance.cli import run_command as run\nrun(['explain', 'isr'])"
    heavy = {"z3", "pyspark", "hypothesis", "kazoo", "reassure_controller"}
    assert load_modules(explain.replace("'isr'", "'drop.leader-kept'")) & heavy == set()
