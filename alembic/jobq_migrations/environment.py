"""The Alembic environment of an application, found as the command `alembic` finds it."""

from __future__ import annotations

import configparser
import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from jobq_migrations.places import DIRECTORY

INI, TOML = "alembic.ini", "pyproject.toml"
FLASK = Path("migrations", INI)  # Flask-Migrate keeps the file inside of the folder that it does not name
NONE_FOUND = (
    f"no Alembic environment here: neither {INI} nor [tool.alembic] of {TOML} names a script_location; run this where"
    " `alembic` is run, or give --config FILE (without an Alembic history, `jobq migrate` does it all)"
)


def history_of(config: Config) -> ScriptDirectory:
    """The application's history: Alembic imports its revision files, as for each of its own commands.

    Raises: CommandError, one line, when it cannot be read.
    """
    try:
        script = ScriptDirectory.from_config(config)
        script.get_heads()
    except CommandError:
        raise
    except Exception as error:  # of the application's own files
        raise CommandError(f"cannot read the Alembic history: {type(error).__name__}: {error}") from error
    if Path(script.dir).resolve() == DIRECTORY.resolve():
        raise CommandError("this is the Alembic environment of jobq itself: run it in an application's folder")
    return script


def find(given: Path | None, environment: Mapping[str, str] = os.environ) -> Config:
    """The settings of the environment in the current directory, or in the file that is given.

    Raises: CommandError, when there is none.
    """
    named = given or Path(environment.get("ALEMBIC_CONFIG") or INI)
    if given and not given.is_file():
        raise CommandError(f"no file {given}: --config names the {INI} or {TOML} of an application")
    for ini in (named, FLASK):
        config = _read(Path(INI), ini) if ini.name == TOML else _read(ini, Path(TOML))
        if config is not None:
            return config
        if given:
            raise CommandError(f"{given} names no script_location: give the {INI} or {TOML} that `alembic` reads")
    raise CommandError(NONE_FOUND)


def _read(ini: Path, toml: Path) -> Config | None:
    """Settings that say where the history is, None where neither file does."""
    quiet = Namespace(quiet=True)  # `jobq` says itself what it wrote
    config = Config(ini if ini.is_file() else None, toml if toml.is_file() else None, cmd_opts=quiet)
    try:
        if config.get_alembic_option("script_location"):
            return config
    except (configparser.Error, ValueError) as error:
        raise CommandError(f"cannot read {ini} or {toml}: {' '.join(str(error).split())}") from error
    if ini.is_file() and (ini.parent / "env.py").is_file():
        config.set_main_option("script_location", str(ini.parent).replace("%", "%%"))
        return config
    return None
