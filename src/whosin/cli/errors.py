"""What goes wrong in a command becomes one line on standard error and an exit code; no traceback reaches its user.

=====  ============================================================================================================
code   meaning
=====  ============================================================================================================
1      a gate was not passed: more than ``--tolerate`` was shown
2      the input: an option, a value, a file that is not there or cannot be read, tables that allow no verdict
70     a mistake in whosin itself; with ``WHOSIN_DEBUG=1`` in the environment the traceback comes too
74     the machine: the disk is full, a device fails, the memory does not suffice
130    stopped from the keyboard
143    told to end (SIGTERM), as batch systems do when the time is over; a journal has what was done
=====  ============================================================================================================

Which exceptions are expected is a closed set: :class:`whosin.errors.WhosinError`, ``OSError`` and ``MemoryError``. A
reader of the output that goes away (``whosin ... | head``) ends the command in silence, with code 1.
"""

from __future__ import annotations

import contextlib
import errno
import inspect
import os
import re
import signal
import sqlite3
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.models import ArgumentInfo

from whosin.cli.render import say
from whosin.errors import WhosinError, must_be

NOBODY_READS, INPUT, BUG, MACHINE, STOPPED, TOLD = 1, 2, 70, 74, 130, 143
DEBUG = "WHOSIN_DEBUG"
_OPTIONS = {
    "delta": "promised_delta",
    "epsilon": "promised_epsilon",
    "estimator": "statistic",
    "groups": "group",
    "n_jobs": "jobs",
    "order": "rdp_order",
    "rho": "zcdp",
    "rng": "seed",
    "rows": "max_rows",
    "tpr_at": "tpr",
    "tpr_at[0]": "tpr",
    "tpr_at[1]": "fpr",
}
"""Options that are called otherwise than the argument of the Python function."""

_ABOUT_PATHS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
_ABOUT_NAMES = {errno.ENAMETOOLONG, errno.ELOOP, errno.EROFS}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
_SQLITE_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}


def clean_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that no traceback reaches its user."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with _ended_like_an_interrupt():
                command(*args, **kwargs)
            if sys.stdout is not None:
                sys.stdout.flush()
        except (typer.Exit, typer.Abort, typer.BadParameter, SystemExit):
            raise
        except _Terminated:
            _end("Ended by SIGTERM; a journal keeps what was done.", TOLD)
        except KeyboardInterrupt:
            _end("Stopped.", STOPPED)
        except BrokenPipeError:
            _close_output()
        except BaseException as error:  # a panic of a compiled library is no Exception
            _end(*_told(error, command))

    return run


class _Terminated(KeyboardInterrupt):
    """Another process told this one to end: what is ready is kept as after Ctrl-C."""


@contextlib.contextmanager
def _ended_like_an_interrupt() -> Iterator[None]:
    """Let SIGTERM raise where it would end the process at once: in the main thread, and where no host hears it."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(*_: Any) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one does not cut the cleaning up short
        raise _Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Commands(TyperGroup):
    """Commands that say what is wrong with the text of an option in the words of all other errors."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Read the options of ``whosin`` itself."""
        with _texts_in_words():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Read the options of a command, and run it."""
        with _texts_in_words():
            return super().invoke(ctx)


@contextlib.contextmanager
def _texts_in_words() -> Iterator[None]:
    """Typer hands on what pydantic says of a text that is no number, or one out of range."""
    try:
        yield
    except typer.BadParameter as error:
        found = getattr(error.__cause__, "errors", None)
        if found is None or error.param is None:
            raise
        name = max(error.param.opts, key=len)
        _end(f"Error: {name if name.startswith('-') else name.upper()} {must_be(found()[0])}", INPUT)


def _named(message: str, command: Callable[..., None]) -> str:
    """Put the options of a command where an error names Python arguments, as ``x must be …`` or ``x=…``."""
    options = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        (given,) = getattr(parameter.annotation, "__metadata__", (None,))
        long = [part for part in getattr(given, "param_decls", None) or () if part.startswith("--")]
        option = long[0].partition("/")[0] if long else "--" + name.replace("_", "-")
        options[name] = name.upper() if isinstance(given, ArgumentInfo) else option
    options = {word: options[name] for word, name in _OPTIONS.items() if name in options} | options
    word, space, rest = message.partition(" ")
    if word in options and rest.startswith(("must ", "is needed")):
        message = f"{options[word]}{space}{rest}"

    def as_option(found: re.Match[str]) -> str:
        name = options.get(found[1])
        if name is None:
            return found[0]
        return f"--no-{name.removeprefix('--')}" if found[2] else f"{name} "

    return re.sub(r"\b(\w+)=(?!=) ?(False)?", as_option, message)


def _told(error: BaseException, command: Callable[..., None]) -> tuple[str, int]:
    """What to say of an exception, and the exit code."""
    if isinstance(error, WhosinError):
        return f"Error: {_named(str(error), command)}", MACHINE if _is_of_the_disk(error) else INPUT
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        where = f": {error.filename}" if error.filename is not None else ""
        about_paths = isinstance(error, _ABOUT_PATHS) or error.errno in _ABOUT_NAMES
        return f"Error: {reason}{where}", INPUT if about_paths else MACHINE
    if isinstance(error, MemoryError):
        return "Error: the memory of this machine does not suffice", MACHINE
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    hint = "" if os.environ.get(DEBUG) else f"; run with {DEBUG}=1 for the traceback"
    told = " ".join(f"{type(error).__name__}: {error}".split())
    return f"Error: this is a bug in whosin: {told}{hint}", BUG


def _is_of_the_disk(error: WhosinError) -> bool:
    """Whether a full or failing disk is behind an error that names the file in its own words."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, OSError) and link.errno in _FULL:
            return True
        if isinstance(link, sqlite3.Error) and getattr(link, "sqlite_errorcode", 0) & 0xFF in _SQLITE_FULL:
            return True
        link = link.__cause__ or link.__context__
    return False


def _end(message: str, code: int) -> NoReturn:
    say("error", message)
    sys.exit(code)


def _close_output() -> NoReturn:
    """End in silence: what the interpreter would still flush goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    sys.exit(NOBODY_READS)
