"""Nobody needs a compiler: all dependencies come as wheels for every platform, and the import is quick."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: As uv names them.
PLATFORMS = (
    "x86_64-manylinux_2_28",
    "aarch64-manylinux_2_28",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
)
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
#: What the first platform gets besides.
LIBRARIES: dict[str, set[str]] = {
    "3.10": {"plyvel"},
    "3.11": {"plyvel", "pyfarmhash"},
    "3.12": {"plyvel", "pyfarmhash"},
    "3.13": {"pyfarmhash"},
    "3.14": set(),
}


def test_package_is_built_on_five_libraries() -> None:
    """Each is asked for without an extra, and at most under a marker of platforms with wheels."""
    required, _ = (ROOT / "pyproject.toml").read_text("utf-8").split("dependencies = [", 1)[1].split("\n]", 1)
    for library in ("scrapy", "trafilatura", "pyfarmhash", "plyvel", "jieba"):
        assert f'\n    "{library}>=' in required, library


@pytest.fixture(scope="session")
def jieba(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel of jieba. Its index has none, but it is Python alone and needs no compiler."""
    folder = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-binary=:all:", "-w", str(folder), "jieba"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    if done.returncode:
        pytest.skip(f"No index can be reached: {done.stderr}")
    return folder


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed.")
@pytest.mark.parametrize("platform", PLATFORMS)
def test_all_dependencies_come_as_wheels(platform: str, jieba: Path) -> None:
    """uv resolves for another platform than this one, with its markers."""
    for version in VERSIONS:
        options = ["--python-platform", platform, "--python-version", version, "--find-links", str(jieba)]
        done = subprocess.run(
            ["uv", "pip", "compile", "-q", "--no-build", *options, "pyproject.toml"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, (version, done.stderr)
        named = {name for name in ("plyvel", "pyfarmhash") if name in done.stdout}
        assert named == (LIBRARIES[version] if platform == PLATFORMS[0] else set()), version


@pytest.mark.slow
def test_the_package_is_imported_in_a_moment() -> None:
    code = "import time; t = time.perf_counter(); import scrapy_neardup; print(time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60) for _ in range(5)]
    assert min(float(run.stdout) for run in runs) < 0.15
