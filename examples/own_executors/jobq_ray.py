"""executor="ray": each job is a Ray task. JOBQ_RAY_ADDRESS: of the cluster; without it Ray starts one."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

from jobq import ChildDiedError
from jobq.executors import Call, Ended, Setup, end_of, order_of, perform


class RayExecutor:
    takes_resources = True
    left_behind: frozenset[int] = frozenset()  # a task that is cancelled with force is killed with its process

    def __init__(self, setup: Setup, ray: Any) -> None:
        self._ray = ray
        self._place = setup.place()
        self._resources = {kind: handler.settings.resources or {} for kind, handler in setup.handlers.items()}
        self._task = ray.remote(max_retries=0)(perform)  # a second attempt is for jobq to decide

    async def run(self, call: Call) -> Ended:
        assert call.attempt is not None
        wanted = {**self._resources[call.context.job.kind]}
        amounts = {"num_cpus": wanted.pop("CPU", 1), "num_gpus": wanted.pop("GPU", 0), "resources": wanted}
        answer = self._task.options(**amounts).remote(order_of(call.attempt, self._place))
        try:
            return end_of(await asyncio.wrap_future(answer.future()))
        except asyncio.CancelledError:
            self._ray.cancel(answer, force=True)
            raise
        except self._ray.exceptions.RayError as error:
            return Ended(error=ChildDiedError(f"the job's Ray task was lost: {type(error).__name__}"))

    async def close(self) -> None:
        await asyncio.to_thread(self._ray.shutdown)


def ray_executor(setup: Setup) -> RayExecutor:
    ray: Any = importlib.import_module("ray")
    ray.init(address=setup.options.get("address"), log_to_driver=False)
    return RayExecutor(setup, ray)
