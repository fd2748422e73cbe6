"""executor="program": each job in a program of its own. JOBQ_PROGRAM_PYTHON: the interpreter that runs it."""

from __future__ import annotations

import asyncio
import sys

from jobq import ChildDiedError
from jobq.executors import Call, Ended, Setup, end_of, order_of, perform


class ProgramExecutor:
    left_behind: frozenset[int] = frozenset()  # what is told to stop is killed

    def __init__(self, setup: Setup) -> None:
        self._place = setup.place()
        self._command = (setup.options.get("python", sys.executable), "-m", "jobq_program")

    async def run(self, call: Call) -> Ended:
        assert call.attempt is not None  # it is there in a worker
        pipe = asyncio.subprocess.PIPE
        program = await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe)
        try:
            answer, _ = await program.communicate(order_of(call.attempt, self._place).encode())
        except asyncio.CancelledError:
            program.kill()
            await program.wait()
            raise
        if program.returncode:
            return Ended(error=ChildDiedError(f"the job's program ended with {program.returncode}"))
        return end_of(answer.decode())

    async def close(self) -> None:
        """Nothing is held from one job to the next."""


if __name__ == "__main__":
    answers, sys.stdout = sys.stdout, sys.stderr  # what a handler prints is no answer
    print(perform(sys.stdin.read()), file=answers)
