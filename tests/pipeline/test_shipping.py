"""What workers are sent: our packages, for a Python that has nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from reassure_pipeline.spark.gateway import find_cause
from reassure_pipeline.spark.packages import find_package, pack_packages


def test_a_bare_python_judges_with_what_is_sent(tmp_path: Path) -> None:
    """A Python without any installed package imports the judge from the file, data included."""
    packed = tmp_path / "reassure.zip"
    pack_packages(packed)
    code = "import sys, reassure_pipeline.audit.run_audit; "
    code += "print(sys.modules['reassure_judge.protocols'].__file__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(packed)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.startswith(str(packed))


def test_a_package_that_is_not_installed_is_named() -> None:
    """What cannot be sent is said before anything starts."""
    with pytest.raises(ModuleNotFoundError, match="reassure_nonsense"):
        find_package("reassure_nonsense")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("x\nModuleNotFoundError: No module named 'numba.core'\n", "Python has no numba.core"),
        ('java.io.IOException: Cannot run program "python9": error=2', "no Python called python9"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has 3.9", "Python in worker has 3.9"),
    ],
)
def test_what_workers_lack_is_told_with_what_to_do(said: str, told: str) -> None:
    """A worker without a package, without a Python, or with another one is a clear error."""
    problem = find_cause(RuntimeError(f"An error occurred.\n{said}"))
    assert told in str(problem)
    assert "PYSPARK_PYTHON" in str(problem)
    assert problem.exit_code == 69


def test_why_a_context_has_ended_is_what_the_log_says() -> None:
    """A master that is not there is told as such, not as what Java then stumbles over."""
    ended = RuntimeError('NullPointerException: Cannot invoke "SparkEnv.driverTmpDir()"')
    log = ["WARN x: y", "ERROR StandaloneSchedulerBackend: All masters are unresponsive!"]
    assert "All masters are unresponsive!" in str(find_cause(ended, log))
    assert "NullPointerException" in str(find_cause(ended))
    assert "heap" in str(find_cause(RuntimeError("OutOfMemoryException: heap"), log))
