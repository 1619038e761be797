"""``whosin --backend``: where the heavy loops of a command run."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from whosin.cli.errors import clean_errors
from whosin.cli.render import log_lines, python_warnings_said
from whosin.errors import InputError, InputTypeError, check_choice, check_whole, missing_extra

BACKENDS = ("loky", "threading", "dask", "ray")
"""Processes or threads of this machine, or a cluster."""

ANSWER, JOIN = 5, 20
"""Seconds to wait for a scheduler, and for its workers."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from whosin import __version__

        typer.echo(__version__)
        raise typer.Exit


@clean_errors
def choose_backend(
    context: typer.Context,
    backend: Annotated[
        str | None,
        typer.Option(
            envvar="WHOSIN_BACKEND",
            help="Where heavy loops run: loky (processes) or threading on this machine, dask or ray on a cluster.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(envvar="WHOSIN_SCHEDULER", help="Address of the Dask scheduler or the Ray head.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            envvar="WHOSIN_WORKERS",
            help="On this machine: how many workers where a command does not say. On a cluster: how many to wait for.",
        ),
    ] = None,
    log_json: Annotated[
        bool,
        typer.Option(
            "--log-json",
            help="Say progress, warnings and errors on standard error as JSON, one object per line.",
        ),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    log_lines.set(log_json)
    if log_json:
        context.with_resource(python_warnings_said())
    if backend is None:
        sources = [context.get_parameter_source(name) for name in ("scheduler", "workers")]
        if any(source is not None and source.name == "COMMANDLINE" for source in sources):
            raise InputTypeError("--scheduler and --workers go with --backend")
        return
    context.with_resource(backend_of(backend, scheduler, workers))


@contextlib.contextmanager
def backend_of(backend: str, scheduler: str | None = None, workers: int | None = None) -> Iterator[None]:
    """Run what is inside on this backend: processes or threads of this machine, or a cluster.

    ``scheduler`` is the address of the Dask scheduler (needed) or of the Ray cluster (by default the one that Ray finds
    or starts); ``workers`` are those of this machine, or how many of the cluster to wait for.
    """
    check_choice("backend", backend, BACKENDS)
    if workers is not None:
        check_whole("workers", workers, low=1)
    if scheduler is not None and backend not in ("dask", "ray"):
        raise InputError(f"--scheduler goes with --backend dask or ray, got {backend}")
    place = {"dask": _dask, "ray": _ray}.get(backend)
    with contextlib.ExitStack() as stack:
        if place is not None:
            stack.enter_context(place(scheduler, workers))
        import joblib

        here = {} if place is not None else {"n_jobs": -1 if workers is None else workers}
        stack.enter_context(joblib.parallel_config(backend=backend, **here))
        yield


@contextlib.contextmanager
def _dask(scheduler: str | None, workers: int | None) -> Iterator[None]:
    try:
        from distributed import Client
    except ImportError:
        raise missing_extra("the backend 'dask' needs Dask", "dask") from None
    if scheduler is None:
        raise InputError("--backend dask needs --scheduler, the address of a scheduler, such as tcp://host:8786")
    try:
        client: Any = Client(scheduler, timeout=ANSWER)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"scheduler must be the address of a Dask scheduler that answers within {ANSWER} seconds, got "
            f"{scheduler!r}: {error}"
        ) from None
    try:
        try:
            client.wait_for_workers(workers or 1, timeout=JOIN)
        except TimeoutError:
            raise InputError(
                f"the scheduler {scheduler!r} has {len(client.nthreads())} workers after {JOIN} seconds, and "
                f"{workers or 1} are wanted"
            ) from None
        yield
    finally:
        client.close()


@contextlib.contextmanager
def _ray(scheduler: str | None, workers: int | None) -> Iterator[None]:
    try:
        import ray  # type: ignore[import-not-found]
        from ray.util.joblib import register_ray  # type: ignore[import-not-found]
    except ImportError:
        raise missing_extra("the backend 'ray' needs Ray", "ray") from None
    try:
        ray.init(address=scheduler, num_cpus=workers if scheduler is None else None, log_to_driver=False)
    except Exception as error:
        raise InputError(
            f"scheduler must be the address of a Ray cluster that answers, got {scheduler!r}: {error}"
        ) from None
    try:
        _wait_for(lambda: int(ray.cluster_resources().get("CPU", 0)), workers or 1)
        register_ray()
        with contextlib.redirect_stdout(_OfThisThread(sys.stdout)):
            yield
    finally:
        ray.shutdown()


def _wait_for(processors: Callable[[], int], wanted: int) -> None:
    end = time.monotonic() + JOIN
    while (there := processors()) < wanted:
        if time.monotonic() > end:
            raise InputError(f"the Ray cluster has {there} processors after {JOIN} seconds, and {wanted} are wanted")
        time.sleep(0.2)


class _OfThisThread:
    """Standard output for the thread that asked for it: what other threads print, as Ray's do, goes to the error."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.thread = stream, threading.get_ident()

    def write(self, text: str) -> int:
        return int((self.stream if threading.get_ident() == self.thread else sys.stderr).write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
