"""executor="kubernetes": each job in a Kubernetes Job, of JOBQ_KUBERNETES_IMAGE in JOBQ_KUBERNETES_NAMESPACE.

The image has the application and this module. The order is in the environment of its pod, where Linux allows 128 KiB.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from typing import Any

from jobq import ChildDiedError
from jobq.executors import Attempt, Call, Ended, Setup, end_of, order_of, perform

LOOK_SECONDS = 1.0
BEFORE_ANSWER = "jobq answer: "


class KubernetesExecutor:
    left_behind: frozenset[int] = frozenset()  # a Job that is deleted takes its pod along, within the grace of a second

    def __init__(self, setup: Setup, batch: Any, core: Any) -> None:
        self._place = setup.place()
        self._image = setup.options["image"]
        self._namespace = setup.options.get("namespace", "default")
        self._batch, self._core = batch, core

    async def run(self, call: Call) -> Ended:
        attempt = call.attempt
        assert attempt is not None
        attempt.waits()  # until its pod runs, its timeout does not count
        name = f"jobq-{attempt.job.id}-{attempt.job.attempt}"
        await self._call(self._batch.create_namespaced_job, self._manifest(name, order_of(attempt, self._place)))
        try:
            return await self._end_of_job(name, attempt)
        finally:
            await self._call(self._batch.delete_namespaced_job, name=name, propagation_policy="Background")

    async def close(self) -> None:
        """The API's connections end with the process."""

    async def _end_of_job(self, name: str, attempt: Attempt) -> Ended:
        while True:
            status = (await self._call(self._batch.read_namespaced_job_status, name=name)).status
            if status.succeeded:
                return end_of(await self._answer(name))
            if status.failed:
                return Ended(error=ChildDiedError(f"the pod of the Kubernetes Job {name} failed before the job did"))
            if status.ready:
                attempt.begins()
            await asyncio.sleep(LOOK_SECONDS)

    async def _answer(self, name: str) -> str:
        (pod,) = (await self._call(self._core.list_namespaced_pod, label_selector=f"job-name={name}")).items
        log = await self._call(self._core.read_namespaced_pod_log, name=pod.metadata.name)
        return str(log).rpartition(BEFORE_ANSWER)[2]

    async def _call(self, method: Any, body: Any = None, **named: Any) -> Any:
        more = {} if body is None else {"body": body}
        return await asyncio.to_thread(method, namespace=self._namespace, **named, **more)

    def _manifest(self, name: str, order: str) -> dict[str, Any]:
        container = {
            "name": "job",
            "image": self._image,
            "command": ["python", "-m", "jobq_kubernetes"],
            "env": [{"name": "JOBQ_ORDER", "value": order}],
        }
        pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
        spec = {"backoffLimit": 0, "ttlSecondsAfterFinished": 600, "template": {"spec": pod}}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def kubernetes_executor(setup: Setup) -> KubernetesExecutor:
    kubernetes: Any = importlib.import_module("kubernetes")
    kubernetes.config.load_config()  # of the pod that the worker runs in, or ~/.kube/config
    return KubernetesExecutor(setup, kubernetes.client.BatchV1Api(), kubernetes.client.CoreV1Api())


if __name__ == "__main__":
    print(f"\n{BEFORE_ANSWER}{perform(os.environ['JOBQ_ORDER'])}", flush=True)
