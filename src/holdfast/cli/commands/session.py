"""The Spark session that commands of a user share."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from holdfast.cli import arguments
from holdfast.cli.command import flag
from holdfast.cli.failures import FOUND
from holdfast.cli.opening import Conf, Master
from holdfast.cli.printing import Printing, print_json


class SessionAction(StrEnum):
    """What can be done with the session that commands share."""

    START = "start"
    STOP = "stop"
    STATUS = "status"


def session(
    action: Annotated[
        SessionAction, typer.Argument(metavar="start|stop|status", help="What to do.")
    ],
    *,
    idle_minutes: Annotated[
        float, flag("--idle-minutes", "Stop after N minutes without a command; 0: never.", "N")
    ] = 30,
    master: Master = None,
    conf: Conf = None,
    printing: Printing,
) -> int:
    """Keep a Spark session running that later commands of this user share."""
    from holdfast.cli import session_control

    if action == SessionAction.START:
        settings = arguments.pairs(conf, "--conf")
        with printing.progress() as progress:
            if progress:
                progress("session")
            status = session_control.start(master, settings, idle_minutes)
    elif action == SessionAction.STOP:
        status = session_control.stop()
    else:
        status = session_control.status()
    if printing.as_json:
        print_json(status.to_dict())
    else:
        sys.stdout.write(f"{status}\n")
    return 0 if status.running or action != SessionAction.STATUS else FOUND
