"""What we ship: the wheel has all that it needs, and the demo runs from it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built offline with the installed backend from a copy of what it is made of."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(
        ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    dist = tmp_path_factory.mktemp("dist")
    command: list[str | Path] = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    command += ["--outdir", dist, source]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    (built,) = dist.glob("*.whl")
    return built


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if not name.split("/")[0].endswith("info")}
        metadata = {Path(name).name for name in archive.namelist()} - shipped
    package = ROOT / "src" / "holdfast"
    ours = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped == ours
    assert {"holdfast/py.typed", "holdfast/sample/shop/orders.csv"} <= shipped
    assert {"LICENSE", "METADATA", "entry_points.txt"} <= metadata


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> dict[str, str]:
    """An environment with the wheel in it, which borrows our dependencies but not our source."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    install: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
    ]
    subprocess.run([*install, "--no-index", "--no-deps", wheel], check=True)
    (site,) = home.glob("lib/python*/site-packages")
    # A plain path: the .pth files in there, with our editable install, are not followed.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    _lend_compiled_kernels(site / "holdfast" / "kernels")

    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    where: list[str | Path] = [python, "-c", "import holdfast; print(holdfast.__file__)"]
    found = subprocess.run(where, env=environment, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(home)
    return environment


@pytest.mark.spark
@pytest.mark.long
def test_a_profile_from_the_wheel(installed: dict[str, str], tmp_path: Path) -> None:
    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=installed, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("python", "-m", "holdfast.sample", "shop")
    assert "customer_id, ordered_on" in run("holdfast", "profile", "shop/orders.csv", "--into", "p")
    run("holdfast", "report", "p", "-o", "page.html")
    assert "<!doctype html>" in (tmp_path / "page.html").read_text().lower()


@pytest.mark.spark
@pytest.mark.long
def test_the_demo_runs_from_the_wheel(installed: dict[str, str]) -> None:
    demo = [ROOT / "tools" / "demo.sh"]
    result = subprocess.run(demo, env=installed, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    commands = [line.split()[2] for line in result.stdout.splitlines() if line.startswith("$ ")]
    assert commands == ["profile", "apply", "apply", "show", "history"]
    for column in ("customer_id", "ordered_on", "channel", "line_no"):
        assert column in result.stdout


def _lend_compiled_kernels(to: Path) -> None:
    """Numba takes a compiled kernel for its source's if that has the same time and size."""
    ours = ROOT / "src" / "holdfast" / "kernels"
    for path in ours.glob("*.py"):
        shutil.copystat(path, to / path.name)
    (to / "__pycache__").mkdir(exist_ok=True)
    for path in (ours / "__pycache__").glob("*.nb[ic]"):
        shutil.copy2(path, to / "__pycache__")


def test_the_lower_bounds_are_the_versions_that_we_test_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    feeds = [*extras["delta"], *extras["kafka"]]
    wanted = [*project["dependencies"], *extras["local"], *extras["connect"], *feeds]
    bounds = dict(re.findall(r"^([\w-]+)(?:\[\w+\])?>=([\d.]+)", "\n".join(wanted), re.MULTILINE))
    assert len(bounds) == len(project["dependencies"]) + len(extras["local"]) + len(feeds)
    assert bounds.items() <= pins("constraints-lowest.txt").items()


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.split(r"[\[<>=]", requirement)[0] for requirement in wanted} - {"holdfast"}
    assert names <= pins("constraints.txt").keys()


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    pinned = (line.split("==") for line in lines if not line.startswith("#"))
    return {name.lower().replace("_", "-"): version for name, version in pinned}


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


# Folders that belong to one person's machine, put together so as not to find themselves.
A_MACHINE = re.compile(
    rb"(?<![\w.~*])/(?:" + b"|".join([b"ro" + b"ot", b"wo" + b"rk", rb"(?:home|Users)/\w+"]) + b")/"
)
AN_INDEX = re.compile(rb"--(?:extra-)?index-url|--trusted-host|--find-links")


def test_no_file_names_a_machine_or_a_package_index() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.decode(errors='replace').strip()}"
        for path in tracked()
        if path != Path(__file__)
        for number, line in enumerate(path.read_bytes().splitlines(), 1)
        if A_MACHINE.search(line) or AN_INDEX.search(line)
    ]
    assert not found
