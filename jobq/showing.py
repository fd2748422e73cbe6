"""Jobs as they may be shown to people: *** in place of secret arguments, and of what stands under keys like `password`.

Which arguments are secret is known twice. The row's meta says what its enqueue knew of the handler; an enqueue in SQL,
or by a bare `jobq.kind`, knows nothing of it. `kinds` says what workers know of theirs, which counts for all rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import replace

from jobq.bind import Bind, connection_of
from jobq.masking import MASK, META, is_secret, masked
from jobq.model import Job
from jobq.reports import CHECKPOINT
from jobq.statements import admin as statements

# Of JSON text a key with its colon, another string, a bracket, a comma, or what is between.
_PART = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*|"[^"\\]*(?:\\.[^"\\]*)*"|[][{},]|[^][{},"]+')
_DEPTH = {"{": 1, "[": 1, "}": -1, "]": -1}


def published_secrets(session: Bind, kind: str | None = None, /) -> frozenset[str]:
    """The secret arguments of a kind as the workers that have it say, None: of all kinds."""
    texts = connection_of(session, "published_secrets").scalars(statements.secrets(), {"kind": kind})
    return frozenset(name for text in texts for name in text.split(","))


def secrets_of(session: Bind, job: Job, /) -> frozenset[str]:
    """The secret arguments of a job: as its enqueue has noted, and as workers say."""
    noted = job.meta.get(META)
    return published_secrets(session, job.kind).union(map(str, noted) if isinstance(noted, list) else ())


def without_secrets(job: Job, names: Collection[str]) -> Job:
    """The job as it may be shown: `names` are masked at the top of what its handler got and gave."""
    noted = {META: job.meta[META]} if META in job.meta else {}  # names, not values
    told = {CHECKPOINT: masked(job.meta[CHECKPOINT], names)} if CHECKPOINT in job.meta else {}
    return replace(
        job,
        args=masked(job.args, names),
        meta={**masked(job.meta), **noted, **told},
        checkpoint=masked(job.checkpoint, names),
        result=masked(job.result, names),
    )


def without_secrets_in_text(text: str, names: Collection[str]) -> str:
    """The same for the text of args that Python cannot parse: a number is too long for it, or it is nested too deep."""
    shown, depth, hidden = [], 0, -1  # `hidden`: how deep the key stands whose value is left out
    for part in _PART.finditer(text):
        word = part[0]
        depth += _DEPTH.get(word, 0)
        if depth < hidden or (depth == hidden and word == ","):
            hidden = -1
        if hidden < 0:
            shown.append(word)
            key = part[1] and json.loads(part[1])
            if key is not None and (is_secret(key) or (depth == 1 and key in names)):
                shown.append(f'"{MASK}"')
                hidden = depth
    return "".join(shown)
