"""``whosin serve``: the page, on this machine."""

from __future__ import annotations

import os
import secrets
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whosin.cli import render
from whosin.cli.errors import clean_errors

if TYPE_CHECKING:
    from whosin.web.access import Password
    from whosin.web.settings import Login

PASSWORD = "WHOSIN_PASSWORD"
_NEEDED = ("fastapi", "uvicorn", "python_multipart", "jinja2")


@clean_errors
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; of this machine alone by default.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes any that is free.")] = 8642,
    data_dir: Annotated[Path | None, typer.Option(help="Private folder for uploads, reports and the history.")] = None,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    keep_hours: Annotated[float, typer.Option(help="Remove reports and details after this time.")] = 24.0,
    max_upload_mb: Annotated[float, typer.Option(help="Largest file that may be uploaded, in MB.")] = 50.0,
    max_rows: Annotated[int, typer.Option(help="Most rows of a table.")] = 200_000,
    max_minutes: Annotated[float, typer.Option(help="Longest time that one audit may take.")] = 15.0,
    max_memory_gb: Annotated[float, typer.Option(help="Most memory that one audit may take, in GB.")] = 4.0,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines in; asks for a password. There is no TLS.")
    ] = False,
    name: Annotated[
        list[str] | None, typer.Option(help="With --allow-remote: a host name that people use; repeat for several.")
    ] = None,
    behind_proxy: Annotated[
        list[str] | None,
        typer.Option(help="With --allow-remote: address or network of a proxy that has people log in; repeatable."),
    ] = None,
    login_header: Annotated[
        str | None, typer.Option(help="With --behind-proxy: the header in which the proxy tells who logged in.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the address and the token as one JSON object.")] = False,
) -> None:
    """Explain, calibrate, audit and compare in the browser; ends with Ctrl-C."""
    from whosin.errors import InputError, check_number, missing_extra

    if any(find_spec(module) is None for module in _NEEDED):
        raise missing_extra("the page needs FastAPI and more", "web")
    from whosin.parallel.storage import user_folder
    from whosin.web.settings import Binding, Limits, Login, Settings

    for option, value in (("--max-upload-mb", max_upload_mb), ("--max-memory-gb", max_memory_gb)):
        check_number(option, value, low=0.001, high=1e6)
    limits = Limits(
        upload_bytes=int(1e6 * max_upload_mb),
        rows=max_rows,
        seconds=60.0 * check_number("--max-minutes", max_minutes, low=0.0, high=1e6, open_low=True),
        memory_bytes=int(1e9 * max_memory_gb),
        keep_hours=check_number("--keep-hours", keep_hours, low=0.0, high=1e6, open_low=True),
    )
    binding = Binding(host, port, allow_remote, tuple(name or ()))
    if behind_proxy and login_header is None:
        raise InputError("--behind-proxy needs --login-header, in which the proxy tells who logged in")
    if login_header is not None and not allow_remote:
        raise InputError("--login-header goes with --allow-remote")
    login = None if login_header is None else Login(login_header, tuple(behind_proxy or ()))
    password = _password(asked=login is None) if allow_remote else None
    if allow_remote and password is None and login is None:
        raise InputError(
            f"--allow-remote needs a password, typed at a terminal or in the variable {PASSWORD}, or a proxy with a "
            "login (--behind-proxy)"
        )
    from whosin.cli.app import app
    from whosin.cli.forms import forms

    settings = Settings(data_dir or user_folder(), limits, login=login, tools=forms(app))
    from whosin.web.server import serve as run

    opened: list[Path] = []

    def announce(address: str, token: str) -> None:
        if json:
            render.emit_json({"url": address, "token": token, "data_dir": str(settings.data_dir)})
        else:
            _say(address, settings.data_dir, token, allow_remote, login)
        sys.stdout.flush()
        if open_browser:
            # not in the data folder: browsers in a sandbox (snap, flatpak) see neither hidden folders nor /tmp
            opened.append(Path.home() / f"whosin-open-{secrets.token_hex(4)}.html")
            _open(address, opened[0])

    try:
        run(settings, binding, password, announce)
    finally:
        for opener in opened:
            opener.unlink(missing_ok=True)


def _say(address: str, folder: Path, token: str, remote: bool, login: Login | None) -> None:
    if login is not None:  # the token stays out of the logs of a container
        typer.echo(f"Listening at {address}; {', '.join(login.proxies)} tells in {login.header} who logged in.")
    else:
        typer.echo(f"Open this address: {address}")
    if remote and login is None:
        typer.echo(f"The page asks for the password. Token for the API: {token}")
        render.say(
            "warning",
            "There is no TLS: whoever can read the network between reads password, uploads and reports. Put a proxy "
            "with TLS in front, or use an SSH tunnel.",
        )
    typer.echo(f"Data: {folder} (yours alone). Ctrl-C ends the server.")


def _open(address: str, opener: Path) -> None:
    """Open the browser by a private file: arguments of a process, unlike it, are there for all users to read."""
    import webbrowser
    from html import escape

    opener.unlink(missing_ok=True)
    with os.fdopen(os.open(opener, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(f'<!DOCTYPE html><meta http-equiv="refresh" content="0;url={escape(address)}"><title>whosin</title>')
    webbrowser.open(opener.resolve().as_uri())


def _password(*, asked: bool) -> Password | None:
    """Return the password of the environment, or of a prompt where it is asked for; None where there is neither."""
    import getpass

    from whosin.errors import InputError
    from whosin.web.access import Password

    text = os.environ.pop(PASSWORD, None)
    if text is None and asked and sys.stdin.isatty():
        text = getpass.getpass("Password for the page: ")
        if text != getpass.getpass("Once more: "):
            raise InputError("the two passwords differ")
    return None if text is None else Password.of(text)
