from __future__ import annotations

import threading
import types
from dataclasses import replace

import pytest

from jobs.domain.errors import TaskNameTaken, TaskNotFound
from jobs.domain.registry import Registry
from jobs.domain.task import define


def send() -> None: ...


def receive() -> None: ...


def test_a_task_is_found_by_its_name() -> None:
    registry = Registry()
    definition = define(send, name="mail.send")
    assert registry.add(definition) is definition
    assert registry.get("mail.send") is registry.find("mail.send") is definition
    assert registry.find("mail.sent") is None


def test_a_missing_task_is_reported_with_the_names_that_look_alike() -> None:
    registry = Registry()
    registry.add(define(send, name="mail.send"))
    with pytest.raises(TaskNotFound, match=r"no task is named 'mail.sned'; did you mean mail.send\?"):
        registry.get("mail.sned")
    with pytest.raises(TaskNotFound, match=r"tasks\.py"):
        registry.get("zzz")


def test_two_functions_cannot_have_one_name() -> None:
    registry = Registry()
    first = registry.add(define(send, name="mail"))
    with pytest.raises(TaskNameTaken) as refused:
        registry.add(define(receive, name="mail"))
    assert f"{__name__}.send" in str(refused.value)
    assert f"{__name__}.receive" in str(refused.value)
    assert registry.get("mail") is first


def test_two_lambdas_of_one_module_are_two_functions() -> None:
    registry = Registry()
    registry.add(define(lambda: 1, name="mail"))
    with pytest.raises(TaskNameTaken):
        registry.add(define(lambda: 2, name="mail"))


def test_the_same_code_again_replaces_because_its_module_was_reloaded() -> None:
    registry = Registry()
    registry.add(define(send))
    again = types.FunctionType(send.__code__, send.__globals__, send.__name__)
    registry.add(define(again))
    assert registry.get(f"{__name__}.send").function is again


def test_names_are_sorted_and_removal_says_whether_there_was_one() -> None:
    registry = Registry()
    for name in ("b", "a"):
        registry.add(define(send, name=name))
    assert registry.names() == ("a", "b")
    assert registry.remove("a") is True
    assert registry.remove("a") is False
    assert registry.names() == ("b",)


def test_many_threads_may_add_and_look_at_once() -> None:
    registry = Registry()
    model = define(send)
    problems: list[BaseException] = []
    gate = threading.Barrier(8)

    def work(number: int) -> None:
        gate.wait(10)
        try:
            for step in range(200):
                registry.add(replace(model, name=f"{number}-{step}"))
                assert f"{number}-{step}" in registry.names()
                registry.remove(f"{number}-{step - 1}")
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert problems == []
    assert len(registry.names()) == 8
