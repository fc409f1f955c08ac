"""Ctrl-C in the first moments of the fork server: it is held back until the server ignores it."""

from __future__ import annotations

import signal

import pytest

from jobs.engine.executors import pool_of_one


def test_interrupts_wait_while_a_child_is_started_and_not_after() -> None:
    with pool_of_one._without_interrupts():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        with pytest.raises(KeyError), pool_of_one._without_interrupts():
            raise KeyError
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
