"""An example in a folder of its own, as after a clone, and the commands of its README: run as they stand."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

ROOT = Path(__file__).parents[2]
KEPT = ("HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "JOBQ_PG_BIN")  # no database, no settings of this test run
# The packages are there: `pip install` then says whether they are those that the README asks for, and installs nothing.
PIP = {"PIP_DRY_RUN": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
PATIENCE_SECONDS = 60.0


class Process:
    """A command that runs beside the test, and what it says, stdout and stderr in one."""

    def __init__(self, command: str, directory: Path, environment: dict[str, str]) -> None:
        self.command = command
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.said: list[str] = []  # all lines so far
        self._lines: Queue[str | None] = Queue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def until(self, text: str) -> str:
        """The next line that holds `text`."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (line := self._next(deadline)) is not None:
            if text in line:
                return line
        raise AssertionError(f"{self.command} did not say {text!r}:\n" + "\n".join(self.said))

    def stop(self) -> int:
        """SIGTERM; the exit code, in shell's counting: 143 for a process that the signal ended."""
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(PATIENCE_SECONDS)
        finally:
            self.close()
        return 128 - code if code < 0 else code

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(5)

    def _next(self, deadline: float) -> str | None:
        try:
            return self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            return None

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self.said.append(line.rstrip("\n"))
                self._lines.put(self.said[-1])
        self._lines.put(None)


class Example:
    """A copy of `examples/<name>` in `folder`/examples, the rest of the repository linked beside it.

    Without a `database_url` it has the PostgreSQL of its own, whose files are in `folder` too.
    """

    def __init__(self, name: str, folder: Path, database_url: str | None = None) -> None:
        self.directory = folder / "examples" / name
        ignored = shutil.ignore_patterns("__pycache__", ".*", "*.egg-info")
        shutil.copytree(ROOT / "examples" / name, self.directory, ignore=ignored)
        for entry in ROOT.iterdir():
            if entry.name != "examples" and not entry.name.startswith("."):
                (folder / entry.name).symlink_to(entry)
        self.port = free_port()  # in place of the one that the README names
        self.environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        self.environment |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        self.environment |= {**PIP, "XDG_DATA_HOME": str(folder / "data"), "PYTHONUNBUFFERED": "1"}
        self.environment |= {"DATABASE_URL": database_url} if database_url else {}
        self._processes: list[Process] = []

    def steps(self) -> list[str]:
        """The commands of the README's sh blocks, in order, without the comments behind them.

        A `\\` at a line's end joins it with the next. One that ends in ` &` is for `start`, without that. The port that
        the README writes as localhost:NNNN is this copy's own.
        """
        text = (self.directory / "README.md").read_text()
        blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        lines = "".join(blocks).replace("\\\n", " ").splitlines()
        commands = [re.sub(r"(^|\s+)# .*$", "", line).strip() for line in lines]
        return [re.sub(r"localhost:\d+", f"localhost:{self.port}", command) for command in commands if command]

    def run(self, command: str, *, fails: bool = False) -> str:
        """What the command prints, stdout and stderr in one; it must succeed, or fail where that is expected."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.directory, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False, timeout=2 * PATIENCE_SECONDS,
        )  # fmt: skip
        assert (done.returncode != 0) == fails, f"{command}: exit code {done.returncode}\n{done.stdout}"
        return done.stdout

    def run_until(self, command: str, says: str) -> str:
        """Run a command that only looks again and again, until what it prints holds `says`."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while says not in (printed := self.run(command)):
            assert time.monotonic() < deadline, f"{command} did not print {says!r}, but:\n{printed}"
            time.sleep(0.1)
        return printed

    def start(self, command: str) -> Process:
        """Run a command that goes on; it ends with the test, if not before."""
        process = Process(command.removesuffix("&"), self.directory, self.environment)
        self._processes.append(process)
        return process

    def close(self) -> None:
        for process in self._processes:
            process.close()


ExampleOf = Callable[[str], Example]  # copies an example by its name


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
