"""Commands in a session that was started before: as if they ran by themselves, or they do."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from holdfast.cli import app, program, session, session_control, session_server
from holdfast.model.errors import InputError, SetupError
from holdfast.tasks import segments
from holdfast.tasks.segments import write_arrays
from tests.cli.conftest import Run

# A session without Spark. Its `verify` waits where the command would, `predicates` ends the whole
# process, `expect` maps a file, and `add` tells what it sees; the others are as they are. Its clock
# is ahead by as many seconds as a file says.
SERVER = """
import os, sys, time
from pathlib import Path
from holdfast.cli import program, session_server

real = program.run

def run():
    what = sys.argv[1]
    if what == "verify":
        try:
            sys.stdout.write("waiting\\n")
            sys.stdout.flush()
            while not Path(sys.argv[2]).exists():
                time.sleep(0.01)
        except KeyboardInterrupt:
            sys.exit(130)
    elif what == "predicates":
        os._exit(1)
    elif what == "expect":
        from holdfast.tasks.segments import map_arrays

        print(sorted(map_arrays(Path(sys.argv[2]))[0]))
    elif what == "add":
        print(os.getcwd(), os.environ.get("COLOUR"), "TERM" in os.environ, sys.stdin.read())
        print(sys.stdout.isatty(), sys.argv[2:], file=sys.stderr)
        sys.exit(3)
    else:
        real()

ahead = Path(os.environ["XDG_RUNTIME_DIR"], "clock")

def clock():
    return time.monotonic() + (float(ahead.read_text()) if ahead.exists() else 0.0)

program.run = run
session_server.clock = clock
os.umask(int(sys.argv[2], 8))
with session_server._only_one() as place, session_server._listening(place) as listener:
    print("ready", flush=True)
    session_server.Server(listener, float(sys.argv[1])).serve(lambda: None)
"""

Client = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the session of this test is, and of no other."""
    # Names of sockets are short, so not under the test's own folder.
    home = Path(f"/tmp/hf-{os.getpid()}-{time.monotonic_ns() % 10**9}")
    home.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))
    monkeypatch.setenv("HOLDFAST_SESSION", "on")
    monkeypatch.chdir(tmp_path)
    return session.folder()


@pytest.fixture
def client() -> Client:
    """Starts a command."""

    def start(*arguments: str, **settings: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "holdfast", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **settings,
        )

    return start


def serving(idle: float = 0.0) -> subprocess.Popen[str]:
    """A session without Spark, which takes commands."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(idle), f"{session._umask():03o}"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    return server


@pytest.fixture
def server(place: Path) -> Iterator[subprocess.Popen[str]]:
    process = serving()
    yield process
    process.kill()
    process.communicate()


def told(process: subprocess.Popen[str], given: str = "") -> tuple[int, str, str]:
    out, err = process.communicate(given)
    return process.returncode, out, err


def test_the_commands_that_run_spark_are_known() -> None:
    found: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    running = {
        name
        for name, command in found.items()
        if any("--remote" in parameter.opts for parameter in command.params)
    }
    # One that follows runs for long, and ends by a signal: it has a Spark of its own.
    assert running - {"follow"} == set(session.SPARK_COMMANDS)


@pytest.mark.slow
def test_a_command_says_the_same_with_and_without_a_session(
    server: subprocess.Popen[str], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["check", "nowhere", "--table", "t", "--inserts", "x.csv"]
    there = told(client(*command))
    assert session_control.status().commands == 1
    monkeypatch.setenv("HOLDFAST_SESSION", "off")
    assert told(client(*command)) == there
    assert session_control.status().commands == 1
    assert (there[0], there[1]) == (2, "")
    assert "nowhere" in there[2]


def test_it_has_the_streams_the_folder_and_the_environment(
    server: subprocess.Popen[str], client: Client, tmp_path: Path
) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TERM"} | {"COLOUR": "grün"}
    for _ in range(2):
        code, out, err = told(client("add", "x", "--y", env=environment), "given\nhere")
        assert (code, out) == (3, f"{tmp_path} grün False given\nhere\n")
        assert err == "False ['x', '--y']\n"


@pytest.mark.parametrize("why", ["--master", "--conf=a=b", "SPARK_REMOTE", "show", None])
def test_what_asks_for_another_spark_is_not_handed_on(
    why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SESSION", "on")
    arguments = ["verify", "nowhere"]
    if why == "SPARK_REMOTE":
        monkeypatch.setenv(why, "sc://nowhere")
    elif why == "show":
        arguments = ["show", "nowhere"]
    elif why:
        arguments += [why, "local[1]"][: 1 if "=" in why else 2]
    ran: list[Any] = []
    monkeypatch.setattr(session, "handed_on", ran.append)
    monkeypatch.setattr(program, "main", lambda: ran.append("here"))
    monkeypatch.setattr(sys, "argv", ["holdfast", *arguments])
    session.main()
    assert ran == (["here"] if why else [arguments, "here"])


@pytest.mark.slow
def test_two_at_once(server: subprocess.Popen[str], client: Client, tmp_path: Path) -> None:
    first = client("verify", str(tmp_path / "go"))
    assert first.stdout is not None
    assert first.stdout.readline() == "waiting\n"
    assert session_control.status().busy
    note = "note: the session is busy with another command; starting Spark for this command only"
    code, _, err = told(client("verify", "nowhere"))
    assert (code, err.splitlines()[0]) == (2, note)
    assert "nowhere" in err.splitlines()[1]
    assert "note" not in told(client("verify", "nowhere", "--quiet"))[2]
    (tmp_path / "go").touch()
    assert told(first) == (0, "", "")
    assert not session_control.status().busy


def test_another_version_is_not_used(
    server: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    mine = session.identity()
    for name in mine:
        monkeypatch.setattr(session, "identity", lambda name=name: {**mine, name: "other"})
        assert session.handed_on(["verify", "x"]) is None
        assert f"another {name} than this command" in capsys.readouterr().err
        assert not session_control.status().usable
        with pytest.raises(InputError, match="session stop"):
            session_control.start(None, {}, 30)


@pytest.mark.slow
def test_an_interrupt_reaches_the_command(
    server: subprocess.Popen[str], client: Client, tmp_path: Path
) -> None:
    for _ in range(2):
        waiting = client("verify", str(tmp_path / "never"))
        assert waiting.stdout is not None
        waiting.stdout.readline()
        waiting.send_signal(signal.SIGINT)
        assert told(waiting) == (130, "", "")
    assert session_control.status().commands == 2


@pytest.mark.slow
def test_the_end_of_a_client_ends_its_command(
    server: subprocess.Popen[str], client: Client, tmp_path: Path
) -> None:
    waiting = client("verify", str(tmp_path / "never"))
    assert waiting.stdout is not None
    waiting.stdout.readline()
    waiting.kill()
    waiting.communicate()
    while session_control.status().busy:
        time.sleep(0.01)
    assert told(client("add"))[0] == 3


def test_the_end_of_the_session_in_the_middle(
    server: subprocess.Popen[str], client: Client
) -> None:
    code, _, err = told(client("predicates", "x"))
    assert code == 70
    assert "shows whether a version was committed" in err


@pytest.mark.slow
def test_what_a_killed_session_left_is_removed(
    place: Path, server: subprocess.Popen[str], client: Client
) -> None:
    server.kill()
    server.wait()
    assert (place / "socket").exists()
    code, _, err = told(client("verify", "nowhere"))
    assert (code, err.splitlines()[0]) == (
        2,
        "note: the session has ended; starting Spark for this command only",
    )
    assert not (place / "socket").exists()
    assert "note" not in told(client("verify", "nowhere"))[2]
    again = serving()
    assert session_control.status().usable
    assert not session_control.stop().running
    assert again.wait() == 0


def test_only_its_user_can_use_it(place: Path, server: subprocess.Popen[str]) -> None:
    assert place.stat().st_mode & 0o777 == 0o700
    assert (place / "socket").stat().st_mode & 0o777 == 0o600
    place.chmod(0o755)
    assert session.ask({"ask": "status"}) is None
    with pytest.raises(SetupError, match="0700"), session_server._only_one():
        pass
    place.chmod(0o700)
    with pytest.raises(SetupError, match="running already"), session_server._only_one():
        pass


def test_it_ends_by_itself(place: Path) -> None:
    server = serving(idle=0.01)
    assert server.wait() == 0
    assert not (place / "socket").exists()
    assert session_control.status().what == "no session is running"
    assert session_control.stop().what == "no session is running"


def open_files(root: int, folder: Path) -> list[str]:
    """The files below a folder that a process, or one that it has started, has open or mapped."""
    parents: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(status.parent.name))
    found: list[str] = []
    processes = [root]
    for pid in processes:
        processes += parents.get(pid, [])
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
            found += [line.partition("/")[1:][1] for line in lines]
            for link in [*Path(f"/proc/{pid}/fd").iterdir(), Path(f"/proc/{pid}/cwd")]:
                with suppress(OSError):
                    found.append(str(link.readlink())[1:])
    return [each for each in found if each.startswith(str(folder)[1:])]


linux = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks at /proc")


@linux
@pytest.mark.slow
def test_files_are_closed_when_it_is_idle(
    place: Path, server: subprocess.Popen[str], client: Client, tmp_path: Path
) -> None:
    file = tmp_path / write_arrays(tmp_path, "words-1.arrow", {"codes": np.arange(5)})
    for minutes in (1, 2):
        assert told(client("expect", str(file)))[:2] == (0, "['codes']\n")
        assert open_files(server.pid, file)
        clock = place.parent / "clock"
        clock.with_suffix(".new").write_text(str(60 * minutes + 1))
        clock.with_suffix(".new").rename(clock)
        while open_files(server.pid, tmp_path):
            assert server.poll() is None
            time.sleep(0.05)
    assert session_control.status().running


def test_files_stay_open_for_a_minute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seconds = [1000.0]
    monkeypatch.setattr(session_server, "clock", lambda: seconds[0])
    server = session_server.Server(socket.socket(socket.AF_UNIX), 0.0)
    path = tmp_path / write_arrays(tmp_path, "words-1.arrow", {"codes": np.arange(5)})
    file = segments.open_arrays(path)
    for later in (1000.0, 1059.0):
        seconds[0] = later
        server.rest()
        assert segments.open_arrays(path) is file
    seconds[0] = 1061.0
    server.rest()
    assert segments.open_arrays(path) is not file
    again = segments.open_arrays(path)
    server.rest()  # once is enough until the next command
    assert segments.open_arrays(path) is again


def test_nonsense_does_not_stop_it(place: Path, server: subprocess.Popen[str]) -> None:
    for text in (b"\n", b"[]\n", b'{"ask": "run"}\n', b"\xff\n"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(place / "socket"))
            connection.sendall(text)
            connection.recv(100)
    assert session_control.status().usable


@linux
@pytest.mark.spark
@pytest.mark.long
def test_a_session_with_spark_closes_files_when_it_is_idle(
    place: Path, client: Client, tmp_path: Path
) -> None:
    """The files of the profile, in this process, Spark's and its workers, which Spark ends."""
    assert told(client("session", "start", "--master", "local[1]", "--quiet"))[0] == 0
    try:
        (tmp_path / "rows.csv").write_text("id,name\n1,Ann\n2,Bob\n")
        assert told(client("profile", "rows.csv", "--into", "p"))[0] == 0
        assert told(client("check", "p", "--table", "rows", "--inserts", "rows.csv"))[0] == 1
        pid = session_control.status().pid
        assert pid is not None
        assert open_files(pid, tmp_path)
        while open_files(pid, tmp_path):
            time.sleep(1)
        assert told(client("check", "p", "--table", "rows", "--inserts", "rows.csv"))[0] == 1
        assert session_control.status().commands == 3
    finally:
        told(client("session", "stop"))


@pytest.mark.spark
@pytest.mark.slow
def test_with_spark(place: Path, client: Client, run: Run, tmp_path: Path) -> None:
    code, out, err = told(client("session", "start", "--master", "local[1]", "--quiet"))
    assert (code, err) == (0, "")
    assert "a session is running" in out
    try:
        (tmp_path / "rows.csv").write_text("id,name\n1,Ann\n2,Bob\n")
        (tmp_path / "more.csv").write_text("id,name\n2,Eve\n")
        assert told(client("profile", "rows.csv", "--into", "p"))[0] == 0
        gate = client("check", "p", "--table", "rows", "--inserts", "m*.csv", "--quiet")
        code, out, err = told(gate)
        assert (code, err) == (1, "")
        assert "1 key would break" in out
        found = json.loads(run("session", "status", "--format", "json").out)
        assert (found["commands"], found["busy"], found["usable"]) == (2, False, True)
        assert run("session", "start").code == 0
        assert "stop" in run("session", "start", "--master", "local[2]").err
    finally:
        stopped = run("session", "stop")
    assert stopped.code == 0
    assert "has ended" in stopped.out
    assert run("session", "status")[:2] == (1, "no session is running\n")
