"""The help of `crawler` names every command."""

from __future__ import annotations

import io
import os
import signal
import threading

import click
import pytest

from crawler.cli.shared import COMMANDS, _advice, _buffered, cli


def test_each_command_of_the_help_exists() -> None:
    context = click.Context(cli)
    for entries in COMMANDS.values():
        for name, entry in entries.items():
            assert cli.get_command(context, name) is not None, name
            assert entry.about.endswith("."), name


def test_a_command_that_is_spelled_wrong_is_named() -> None:
    with pytest.raises(click.UsageError, match=r"No such command 'stauts'\. Did you mean status\?"):
        cli.main(["stauts"], standalone_mode=False)
    with pytest.raises(click.UsageError, match=r"No such command 'xyzzy'\.$"):
        cli.main(["xyzzy"], standalone_mode=False)


def test_what_is_missing_is_named_at_once_in_one_line() -> None:
    for words, message in (
        (
            ["rup", "serve", "--root", "."],
            "Missing options --base-url, --listen, --smtp. See `crawler rup serve --help`.",
        ),
        (["control"], "Choose from: pause, resume, stop, block, unblock, queue. See `crawler control --help`."),
    ):
        with pytest.raises(click.UsageError) as raised:
            cli.main(words, prog_name="crawler", standalone_mode=False)
        assert _advice(raised.value).endswith(message)


def test_a_long_text_is_written_whole_although_a_signal_interrupts_it() -> None:
    """Without a buffer, as PYTHONUNBUFFERED makes standard output, the end of the text would be lost."""
    reader, writer = os.pipe()
    interrupted, read = threading.Event(), list[bytes]()

    def take() -> None:
        interrupted.wait(5)
        with open(reader, "rb") as file:
            read.append(file.read())

    before = signal.signal(signal.SIGALRM, lambda *_: interrupted.set())
    taker = threading.Thread(target=take)
    taker.start()
    try:
        with io.TextIOWrapper(io.FileIO(writer, "w"), write_through=True) as unbuffered:
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            print("x" * 200_000, file=_buffered(unbuffered))
    finally:
        signal.signal(signal.SIGALRM, before)
    taker.join()
    assert len(read[0]) == 200_001
