"""The sources of settings, read: the file, the environment, and what typer found on the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import typer

from jobq.urls import VARIABLES
from jobq_cli.failures import USAGE, say
from jobq_cli.settings.merge import Settings, merge
from jobq_cli.settings.project import FILE, ProjectFault, find_project

APP = "JOBQ_APP"


def gather(line: Mapping[str, str | bool | None], *, isolated: bool = False) -> Settings:
    """The settings and what is wrong with them; `isolated`: the command line's and the database's."""
    if isolated:
        return merge(None, {name: os.environ[name] for name in VARIABLES if name in os.environ}, line)
    try:
        return merge(find_project(Path.cwd()), os.environ, line)
    except ProjectFault as fault:
        settings = merge(None, os.environ, line)
        settings.faults.insert(0, str(fault))
        settings.is_whole = False
        return settings


def need_app(settings: Settings, command: str, *, isolated: bool = False) -> None:
    """One fault more, where no source names an app."""
    if settings["app"] is None and settings.is_whole and "app" not in settings.refused:
        elsewhere = "" if isolated else f", or set app in [tool.jobq] of {FILE}, or {APP}"
        settings.faults.append(f"no app: write {command} shop.jobs:app{elsewhere}")


def configured_app(command: str) -> tuple[list[str], Path | None]:
    """The app that JOBQ_APP or a file names, and the folder that it is in. Raises: typer.Exit, having said why."""
    settings = gather({})
    need_app(settings, command)
    end_with_faults(settings)
    return [settings["app"]], settings.app_folder


def end_with_faults(settings: Settings) -> None:
    """Say all of them, a line each. Raises: typer.Exit, where there are any."""
    for fault in settings.faults:
        say(f"error: {fault}")
    if settings.faults:
        raise typer.Exit(USAGE)
