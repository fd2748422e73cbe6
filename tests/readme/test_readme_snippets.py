"""Every block of code in the documents is executed, and every command and call in their text is there."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
import sqlalchemy as sa
from documents import DOCUMENTS, ROOT, Block, blocks, prose, snippets, spans, text_of
from following import Reader
from usage import exists, has_option, is_command

import jobq
from jobq.errors import UnknownScheduleError

pytestmark = pytest.mark.anyio

ALL = [block for document in DOCUMENTS for block in blocks(document) if block.language]
PYTHON = [block for document in DOCUMENTS for block in snippets(document)]
# Where each language's blocks are executed.
TESTED = {
    "python": "here",
    "sh": "test_readme_commands.py",
    "dockerfile": "test_in_production.py",
    "sql": "test_readme_sql.py",
    "console": "test_readme_consoles.py",
    "toml": "test_readme_options.py",
}
CALL = re.compile(r"(await )?jobq\.\w+(\.\w+)*\(.*\)", re.DOTALL)
NAME = re.compile(r"jobq(\.\w+)+")
NO_ATTRIBUTES = {"jobq.schema_version", "jobq.audit"}  # a table, a logger


def test_no_block_is_without_a_test() -> None:
    assert {block.id: block.language for block in ALL if block.language not in TESTED} == {}
    assert len(PYTHON) >= 4


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.id)
async def test_a_python_block_runs_after_those_before_it(block: Block, reader: Reader) -> None:
    before = [each for each in snippets(block.document) if each.line <= block.line]

    await reader.follow(*before)


async def test_both_jobs_of_the_first_steps_are_there_after_the_commit(application: Reader) -> None:
    names = application.names

    found = {job.kind: job for job in jobq.jobs(names["session"])}

    assert found.keys() >= {"receipt.send", "invoice.pdf"}
    assert found["receipt.send"].args == {"order_id": names["order"].id}
    assert (found["receipt.send"].queue, found["receipt.send"].max_attempts) == ("email", 8)
    assert found["invoice.pdf"].unique_key == f"invoice:{names['order'].id}"
    assert found["invoice.pdf"].run_at > found["receipt.send"].run_at


async def test_the_application_of_the_readme_works(application: Reader, database_url: str) -> None:
    """Its handlers, lifespan, surroundings and error callback, on a worker in this process."""
    names = application.names
    session = names["session"]
    jobq.enqueue(session, names["book"], order_id=7)
    jobq.enqueue(session, names["charge"], order_id=7)
    jobq.enqueue(session, names["render_invoice"], order_id=7)
    jobq.enqueue(session, names["scale"], path="tea.jpeg", width=100)
    session.commit()
    names["app"].include(names["handlers"])
    worker = jobq.Worker(names["app"], database_url)

    await application.work_until_nothing_is_due(worker)

    ended = {(job.kind, job.state, job.outcome) for job in jobq.jobs(session)}
    assert {kind for kind, state, _ in ended if state is jobq.State.DONE} >= {
        "payment.book", "card.charge", "receipt.send", "invoice.pdf", "company.latest", "image.scale",
    }  # fmt: skip
    assert ("invoice.pdf", jobq.State.DONE, "skip: already rendered") in ended
    assert session.scalars(sa.select(names["Payment"].order_id)).all() == [7]
    assert names["reported"] == []


@pytest.mark.parametrize("span", [span for span in dict.fromkeys(spans(prose("README.md"))) if CALL.fullmatch(span)])
async def test_a_call_in_the_text_can_be_made(span: str, application: Reader) -> None:
    if "..." in span.replace('"..."', "") or span.startswith("jobq.current()"):
        assert resolved(span.removeprefix("await ").partition("(")[0])
        return
    with suppress(UnknownScheduleError):  # no worker has told of it yet
        await application.execute(span)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_name_of_the_library_in_the_text_is_there(document: str) -> None:
    named = {span for span in spans(prose(document)) if NAME.fullmatch(span)} - NO_ATTRIBUTES

    assert [name for name in sorted(named) if not resolved(name)] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_in_the_text_is_there(document: str) -> None:
    for span in spans(prose(document)):
        if is_command(span):
            assert exists(span), span


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_test_that_is_named_is_there(document: str) -> None:
    """As `test_its_whole_name`, or `test_f01_...` where the end is left out."""
    files = [*(ROOT / "tests").rglob("test_*.py")]
    known = {path.stem for path in files}.union(*(re.findall(r"def (test_\w+)", path.read_text()) for path in files))
    named = {span for span in spans(prose(document)) if re.fullmatch(r"test_\w+(\.\.\.)?", span)}

    def is_there(name: str) -> bool:
        return name in known or (name.endswith("...") and any(each.startswith(name[:-3]) for each in known))

    assert [name for name in sorted(named) if not is_there(name)] == []


def test_every_option_in_the_table_of_commands_is_there() -> None:
    lines = [line for line in text_of("README.md").splitlines() if line.startswith("| `jobq ")]
    assert len(lines) >= 7
    for line in lines:
        first, rest = line.split("|")[1:3]
        for option in (span for span in spans(rest) if span.startswith("--")):
            assert any(has_option(command, option) for command in spans(first)), (line, option)


def resolved(name: str) -> bool:
    """Whether a dotted name is a public one: an attribute of the package, or a module of it."""
    found: object = jobq
    for part in name.split(".")[1:]:
        if not hasattr(found, part):
            return bool(list((ROOT / "jobq").glob(f"{part}*"))) and found is jobq
        found = getattr(found, part)
    return True
