"""The worker, as its child sees it: jobs and answers come from it, ends and questions go to it."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

from jobq.errors import ContextError, LeaseLostError
from jobq.executors.process import wire
from jobq.executors.process.wire import Message

QUIT_SECONDS = 2.0  # what the interpreter has to end once there are no more jobs


class Parent:
    """A thread listens, so that a busy job neither misses its cancellation nor outlives its worker."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._sending = threading.Lock()
        self._asking = threading.Lock()
        self._jobs: SimpleQueue[Message | None] = SimpleQueue()
        self._answers: SimpleQueue[Message] = SimpleQueue()
        self._is_busy = False
        self._pid = os.getpid()

    def hello(self) -> Message:
        """What the worker says first."""
        return wire.receive_in_thread(self._socket)

    def listen(self, *, on_cancel: Callable[[bool], None]) -> None:
        """`on_cancel`: called with whether the attempt counts no more, to stop the job."""
        threading.Thread(target=self._listen, args=[on_cancel], name="jobq-parent", daemon=True).start()

    def jobs(self) -> Iterator[Message]:
        """Rows, until the worker wants no more."""
        while (row := self._jobs.get()) is not None:
            yield row

    def tell(self, message: Message) -> None:
        """Send a message, from any thread. Raises: OSError, when the worker is gone."""
        packed = wire.pack(message)
        with self._sending:
            self._socket.sendall(packed)

    def ended(self, end: Message) -> None:
        """The end of the job; from here on the child is idle."""
        if os.getpid() != self._pid:
            os._exit(0)  # a copy that the handler has forked, and that came back from it
        self._is_busy = False
        self.tell({"is": "ended", "end": end})

    def ask(self, what: str) -> Any:
        """The worker's answer. Raises: LeaseLostError, ContextError."""
        with self._asking:
            self.tell({"is": "ask", "what": what})
            answer = self._answers.get()
        if "lost" in answer:
            raise LeaseLostError(answer["lost"])
        if "error" in answer:
            raise ContextError(f"no transaction here: {answer['error']}")
        return answer["value"]

    def _listen(self, on_cancel: Callable[[bool], None]) -> None:
        while True:
            try:
                message = wire.receive_in_thread(self._socket)
            except wire.Ended:
                return self._left_alone()
            match message["is"]:
                case "job":
                    self._is_busy = True
                    self._jobs.put(message["job"])
                case "cancel":
                    on_cancel(message["is_lost"])
                case "answer":
                    self._answers.put(message)

    def _left_alone(self) -> None:
        """An idle child is not wanted any more and ends by itself; a busy one has no worker any more, and ends now."""
        if not self._is_busy:
            self._jobs.put(None)
            time.sleep(QUIT_SECONDS)  # a daemon thread: an interpreter that ends does not wait for it
        os.killpg(os.getpgrp(), signal.SIGKILL)  # the group is the child's own: it, and what its handler has started
