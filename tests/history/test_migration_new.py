"""`jobq migration new`: what it finds, what it writes, what it refuses. No database is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from history_shop import INI, PYPROJECT, Shop

from jobq_migrations import DIRECTORY


def one_line(said: str) -> str:
    assert said.count("\n") == 1, said
    return said


def test_the_revision_follows_the_head_and_calls_jobq(offline_shop: Shop) -> None:
    text = offline_shop.new()

    assert "down_revision = 's3'" in text
    assert '"""add the tables of jobq"""' in text
    assert "import jobq_migrations\n" in text
    assert 'def upgrade():\n    jobq_migrations.upgrade(to="0001")\n' in text
    assert 'def downgrade():\n    jobq_migrations.downgrade(to="base", since="0001")\n' in text
    assert offline_shop.alembic("heads").stdout.count("(head)") == 1


def test_it_says_where_it_wrote_and_then_that_nothing_is_to_do(offline_shop: Shop) -> None:
    first = offline_shop.jobq("migration", "new").stdout
    files = offline_shop.files()
    second = offline_shop.jobq("migration", "new").stdout

    assert first.startswith("wrote migrations/versions/")
    assert first.endswith(
        "add_the_tables_of_jobq.py: `alembic upgrade head` brings the tables of jobq to revision 0001\n"
    )
    assert second.endswith("_add_the_tables_of_jobq.py brings the tables to revision 0001 already: nothing to do\n")
    assert offline_shop.files() == files
    assert len(files) == 4


def test_json_says_the_same(offline_shop: Shop) -> None:
    first, second = (json.loads(offline_shop.jobq("migration", "new", "--json").stdout) for _ in range(2))

    assert first == {"before": None, "after": "0001", "path": second["path"]}
    assert second["before"] == second["after"] == "0001"
    assert (offline_shop.directory / first["path"]).is_file()


@pytest.mark.parametrize("message", ["add jobq", 'say "jobq"', "a \\back", "two\nlines"])
def test_the_message_is_the_owners(offline_shop: Shop, message: str) -> None:
    text = offline_shop.new("-m", message)

    assert message.replace('"', "'").replace("\\", "/") in text
    offline_shop.alembic("history")


def test_a_history_without_revisions_begins_with_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")

    assert "down_revision = None" in shop.new()


def test_a_pyproject_will_do(offline_shop: Shop) -> None:
    (offline_shop.directory / "alembic.ini").unlink()
    offline_shop.write("pyproject.toml", PYPROJECT)

    assert "down_revision = 's3'" in offline_shop.new()


def test_an_ini_for_the_logging_beside_a_pyproject_will_do(offline_shop: Shop) -> None:
    offline_shop.write("alembic.ini", "[alembic]\nsqlalchemy.url = postgresql://u:p%40ss@h/d\n")
    offline_shop.write("pyproject.toml", PYPROJECT)

    assert "down_revision = 's3'" in offline_shop.new()


def test_a_percent_sign_in_the_url_of_the_ini_does_no_harm(offline_shop: Shop) -> None:
    offline_shop.write("alembic.ini", INI.replace("prepend", "sqlalchemy.url = postgresql://u:p%40%ss@h/d\nprepend"))

    offline_shop.new()


def test_config_names_the_file_and_so_does_the_variable_of_alembic(offline_shop: Shop) -> None:
    directory = offline_shop.directory
    (directory / "alembic.ini").rename(directory / "other.ini")
    offline_shop.jobq("migration", "new", fails=True)

    offline_shop.environment["ALEMBIC_CONFIG"] = "other.ini"
    offline_shop.new()
    del offline_shop.environment["ALEMBIC_CONFIG"]
    assert "nothing to do" in offline_shop.jobq("migration", "new", "--config", "other.ini").stdout


def test_config_may_be_a_pyproject_elsewhere(offline_shop: Shop, tmp_path: Path) -> None:
    offline_shop.write("pyproject.toml", PYPROJECT)
    (offline_shop.directory / "alembic.ini").unlink()
    offline_shop.directory = tmp_path  # where it is typed
    offline_shop.jobq("migration", "new", "-c", "shop/pyproject.toml")

    assert len(offline_shop.files()) == 4


def test_the_folder_of_flask_migrate_is_found(offline_shop: Shop) -> None:
    (offline_shop.directory / "alembic.ini").unlink()
    offline_shop.write("migrations/alembic.ini", "[alembic]\n# no script_location, the extension sets it\n")

    assert "down_revision = 's3'" in offline_shop.new()


def test_env_py_is_not_run(offline_shop: Shop) -> None:
    offline_shop.write("migrations/env.py", "raise SystemExit('it was run')")

    offline_shop.new()


def test_without_an_environment_it_says_what_to_do(offline_shop: Shop) -> None:
    (offline_shop.directory / "alembic.ini").unlink()
    said = one_line(offline_shop.jobq("migration", "new", fails=True).stderr)

    assert said.startswith(
        "error: no Alembic environment here: neither alembic.ini nor [tool.alembic] of pyproject.toml"
    )
    assert "give --config FILE" in said


@pytest.mark.parametrize(
    ("files", "arguments", "words"),
    [
        ({}, ["--config", "none.ini"], "no file none.ini: --config names the alembic.ini or pyproject.toml"),
        ({"a.ini": "[alembic]\n"}, ["--config", "a.ini"], "a.ini names no script_location"),
        ({"alembic.ini": "[alembic]\nscript_location = gone\n"}, [], "gone"),
        ({"alembic.ini": "nonsense"}, [], "cannot read alembic.ini or pyproject.toml"),
        ({"pyproject.toml": "[tool"}, [], "cannot read alembic.ini or pyproject.toml"),
        ({"migrations/versions/bad.py": "import nowhere_to_be_found\n"}, [], "ModuleNotFoundError: No module named"),
        ({"migrations/versions/bad.py": "def (:\n"}, [], "cannot read the Alembic history: SyntaxError"),
    ],
    ids=["no such file", "no location", "no folder", "no ini", "no toml", "a broken import", "a broken file"],
)
def test_what_cannot_be_read_is_one_line(
    offline_shop: Shop, files: dict[str, str], arguments: list[str], words: str
) -> None:
    if "pyproject.toml" in files:
        (offline_shop.directory / "alembic.ini").unlink()
    for name, text in files.items():
        offline_shop.write(name, text)
    before = offline_shop.files()

    assert words in one_line(offline_shop.jobq("migration", "new", *arguments, fails=True).stderr)
    assert offline_shop.files() == before


def test_several_heads_are_refused_with_their_names(offline_shop: Shop) -> None:
    offline_shop.write_revision("s4", "s2", "pass")
    said = one_line(offline_shop.jobq("migration", "new", fails=True).stderr)

    assert "has several heads (s3, s4), and one revision follows one: join them first (`alembic merge heads`)" in said
    assert len(offline_shop.files()) == 4


def test_a_template_without_room_is_refused_and_nothing_is_written(offline_shop: Shop) -> None:
    offline_shop.write("migrations/script.py.mako", 'def upgrade():\n    ${context.get("a_upgrades", "pass")}\n')
    said = one_line(offline_shop.jobq("migration", "new", fails=True).stderr)

    assert "leaves no room for imports and upgrades and downgrades: write the revision by hand" in said
    assert 'jobq_migrations.upgrade(to="0001")' in said
    assert len(offline_shop.files()) == 3


@pytest.mark.parametrize(
    ("imported", "call"),
    [
        ("import jobq_migrations", 'jobq_migrations.upgrade(to="0001")'),
        ("import jobq_migrations as of_jobq", "of_jobq.upgrade( to = '0001' , )"),
        ("from jobq_migrations import upgrade as bring", "bring(since='base', to='0001')"),
    ],
    ids=["plain", "renamed", "from"],
)
def test_a_revision_written_by_hand_counts(offline_shop: Shop, imported: str, call: str) -> None:
    offline_shop.write_revision("s4", "s3", f"{imported}\n{call}")

    assert "s4.py brings the tables to revision 0001 already" in offline_shop.jobq("migration", "new").stdout


def test_words_in_a_comment_do_not_count(offline_shop: Shop) -> None:
    offline_shop.write_revision("s4", "s3", "pass  # import jobq_migrations; jobq_migrations.upgrade(to='0001')")

    assert "down_revision = 's4'" in offline_shop.new()


def test_a_history_of_a_later_jobq_is_refused(offline_shop: Shop) -> None:
    offline_shop.write_revision("s4", "s3", "import jobq_migrations\njobq_migrations.upgrade(to='0099')")
    said = one_line(offline_shop.jobq("migration", "new", fails=True).stderr)

    assert "s4.py brings revision 0099 of jobq, which this version does not know (it knows 0001): install" in said


def test_another_schema_is_written_down_and_kept(offline_shop: Shop) -> None:
    text = offline_shop.new("--schema", 'of "shop"')

    assert 'jobq_migrations.upgrade(to="0001", schema="of \\"shop\\"")' in text
    assert 'jobq_migrations.downgrade(to="base", since="0001", schema="of \\"shop\\"")' in text
    assert "nothing to do" in offline_shop.jobq("migration", "new").stdout
    offline_shop.new("--schema", "jobq")
    assert "several schemas" not in offline_shop.jobq("migration", "new", "--schema", "jobq").stdout
    said = one_line(offline_shop.jobq("migration", "new", fails=True).stderr)
    assert 'to several schemas (jobq, of "shop"): give --schema' in said


def test_the_help_names_the_filter_for_each_place_of_the_tables(offline_shop: Shop) -> None:
    said = " ".join(offline_shop.jobq("migration", "new", "--help").stdout.split())

    assert "include_schemas=True, give it include_name=jobq_migrations.include_name;" in said
    assert "include_name=functools.partial(jobq_migrations.include_name, schema=None)" in said


def test_the_environment_of_jobq_itself_is_not_written_to(offline_shop: Shop) -> None:
    offline_shop.write("alembic.ini", f"[alembic]\nscript_location = {DIRECTORY}\n")
    said = one_line(offline_shop.jobq("migration", "new", fails=True).stderr)

    assert "this is the Alembic environment of jobq itself" in said
