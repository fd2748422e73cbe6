"""A handler that goes on where it was, for the test that kills its worker."""

from __future__ import annotations

from pathlib import Path

import anyio

import jobq

app = jobq.App()
PAGES = 6


def write(path: str, page: int) -> None:
    with Path(path).open("a") as file:
        file.write(f"{page}\n")


@app.handler("copies")
async def copies(path: str) -> jobq.Ok:
    """Copies page by page; its first attempt stands still after the third."""
    context = jobq.current()
    copied = (context.last_checkpoint or {"page": 0})["page"]
    for page in range(copied + 1, PAGES + 1):
        write(path, page)
        context.progress(page / PAGES, f"page {page} of {PAGES}")
        context.checkpoint({"page": page})
        if page == 3 and context.job.attempt == 1:
            await anyio.sleep_forever()
    return jobq.Ok("copied", result={"pages": PAGES})
