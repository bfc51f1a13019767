"""Plays the ensemble with its tool mocked, and against its real server. Run with pytest, from anywhere."""

from pathlib import Path

from luthier.testing import TestConductor, expect

PROJECT = Path(__file__).parents[1]


def test_hello_shouts_what_the_greeter_says():
    conductor = TestConductor(PROJECT, mocks={"tools": {"greeter:greet": "Servus"}}, strict=True)
    result = conductor.play("hello", name="Ada")
    expect(result).to_be_successful().to_have_output({"greeting": "Servus", "shouted": "SERVUS!"})
    expect(result).to_have_called("greeter:greet", {"name": "Ada"})


def test_hello_greets_by_name():
    result = TestConductor(PROJECT).play("hello", name="Ada")
    assert result.success
    assert result.output == {"greeting": "Hello, Ada", "shouted": "HELLO, ADA!"}
