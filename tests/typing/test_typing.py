"""What mypy --strict and pyright say to an application that has the wheel installed.

right*.py: nothing. wrong*.py: exactly what stands in the comment above a line, and nothing elsewhere; the words of
mypy, `||`, those of pyright, as regular expressions. `-`: it does not see it; `&&`: it complains more than once.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hatchling.builders.wheel import WheelBuilder

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WRONG = "# wrong: "
WORDS_OF = {"mypy": 0, "pyright": 1}  # which of the two parts of a comment is whose

Place: TypeAlias = tuple[str, int]  # a file and a line
Said: TypeAlias = dict[Place, list[str]]


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the calls and an environment, `.venv`: the wheel, and all else as the tests have it."""
    folder = tmp_path_factory.mktemp("application")
    venv.create(folder / ".venv", symlinks=True)
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    (site,) = folder.glob(".venv/lib/python*/site-packages")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(site)
    others = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "others.pth").write_text("\n".join(others))  # of a .pth there, as of our checkout, nothing is read
    for path in _calls():
        shutil.copy(path, folder)
    return folder


def test_the_application_has_the_wheel_and_not_the_checkout(application: Path) -> None:
    code = "import jobq, jobq_cli, jobq_migrations; print(jobq.__file__, jobq_cli.__file__, jobq_migrations.__file__)"

    printed = _run(application, [str(_python(application)), "-c", code])

    assert all(Path(file).is_relative_to(application) for file in printed.split())


@pytest.mark.slow  # it reads all of SQLAlchemy
def test_mypy_accepts_right_calls_and_refuses_each_wrong_one_for_its_reason(
    application: Path, mypy_cache: Path
) -> None:
    assert _differences(_said_by_mypy(application, mypy_cache), _expected("mypy")) == []


@pytest.mark.slow  # the first run downloads it
def test_pyright_accepts_right_calls_and_refuses_each_wrong_one_for_its_reason(application: Path) -> None:
    assert _differences(_said_by_pyright(application), _expected("pyright")) == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param({("a.py", 1): ["no"]}, {}, id="a complaint where none is expected"),
        pytest.param({}, {("a.py", 1): ["no"]}, id="no complaint where one is expected"),
        pytest.param({("a.py", 1): ["other"]}, {("a.py", 1): ["no"]}, id="a complaint for another reason"),
        pytest.param({("a.py", 1): ["no", "no"]}, {("a.py", 1): ["no"]}, id="two complaints for one"),
        pytest.param({("a.py", 1): ["no", "no"]}, {("a.py", 1): ["no", "on"]}, id="one of two reasons twice"),
        pytest.param({("a.py", 1): ["no", "ja"]}, {("a.py", 1): ["no", "n"]}, id="two reasons in one complaint"),
        pytest.param({("a.py", 2): ["no"]}, {("a.py", 1): ["no"]}, id="a complaint on another line"),
    ],
)
def test_a_difference_is_found(said: Said, expected: Said) -> None:
    assert _differences(said, expected) != []


def test_every_wrong_call_names_a_reason_for_both_checkers_and_no_right_one_does() -> None:
    marked = [line for path in _calls() for line in path.read_text().splitlines() if WRONG in line]

    assert all(line.count("||") == 1 for line in marked)
    assert {place[0] for place in _expected("pyright")} == {path.name for path in HERE.glob("wrong*.py")}


def _calls() -> list[Path]:
    return sorted([*HERE.glob("right*.py"), *HERE.glob("wrong*.py")])


def _expected(checker: str) -> Said:
    """What the comments want the checker to say, by the lines below them."""
    expected: Said = {}
    for path in _calls():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.strip().startswith(WRONG):
                words = line.strip().removeprefix(WRONG).split(" || ")[WORDS_OF[checker]]
                expected[path.name, number + 1] = [] if words == "-" else words.split(" && ")
    return expected


def _differences(said: Mapping[Place, list[str]], expected: Mapping[Place, list[str]]) -> list[str]:
    """Empty when every line got the complaints that it must get, and no others."""
    return [
        f"{place[0]}:{place[1]}: expected {expected.get(place, [])}, got {said.get(place, [])}"
        for place in sorted(said.keys() | expected.keys())
        if not _fits(said.get(place, []), expected.get(place, []))
    ]


def _fits(said: list[str], expected: list[str]) -> bool:
    """As many complaints as reasons, each complaint for one of the reasons, each reason in one of the complaints."""
    fitting = [[re.search(words, each) is not None for words in expected] for each in said]
    return len(said) == len(expected) and all(map(any, fitting)) and all(map(any, zip(*fitting, strict=True)))


def _said_by_mypy(application: Path, cache: Path) -> Said:
    options = ["--strict", "--config-file=", f"--cache-dir={cache}", "--output=json"]
    python = ["--python-executable", str(_python(application))]
    printed = _check(application, ["mypy", *options, *python])
    lines = [json.loads(line) for line in printed.splitlines()]
    return _by_place(
        [line for line in lines if line["severity"] != "note"],
        lambda line: (Path(line["file"]).name, line["line"]),
    )


def _said_by_pyright(application: Path) -> Said:
    printed = _check(application, ["pyright", "--outputjson", "--pythonpath", str(_python(application))])
    return _by_place(
        json.loads(printed)["generalDiagnostics"],
        lambda found: (Path(found["file"]).name, found["range"]["start"]["line"] + 1),
    )


def _by_place(found: list[dict[str, Any]], place_of: Callable[[dict[str, Any]], Place]) -> Said:
    said: Said = defaultdict(list)
    for each in found:
        said[place_of(each)].append(" ".join(each["message"].split()))
    return said


def _check(application: Path, command: list[str]) -> str:
    """Runs the checker of the environment of the tests, in and on the application."""
    return _run(application, [sys.executable, "-m", *command, *[path.name for path in _calls()]], codes=(0, 1))


def _run(application: Path, command: list[str], codes: tuple[int, ...] = (0,)) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    environment = {**kept, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}  # one is: there is a newer version
    done = subprocess.run(command, cwd=application, env=environment, capture_output=True, text=True)
    assert done.returncode in codes, f"{command[:3]}: {done.stdout}{done.stderr}"
    return done.stdout


def _python(application: Path) -> Path:
    return application / ".venv" / "bin" / "python"
