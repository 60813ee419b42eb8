"""pytest settings for all tests: Hypothesis profiles, Ctrl-C, coverage, and what real-time tests do on a busy machine.

The default profile repeats the same examples on every run, so that a red run is red for everybody.
`HYPOTHESIS_PROFILE=thorough ./fadelab test -- -k properties` searches further, with fresh examples.
"""

import os
import signal
import sys
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# before the first import of one: a failed assertion of a helper says what it compared, too
pytest.register_assert_rewrite("tests.harness")
pytest_plugins = ["tests.harness.busy"]

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("repeatable", max_examples=60, stateful_step_count=60, derandomize=True, **_COMMON)
settings.register_profile("thorough", max_examples=2000, stateful_step_count=120, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

# A shell without job control starts background jobs deaf to Ctrl-C, and what they start is deaf as well.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Fail a test that takes away the tracer: `--coverage` would not see the tests after it."""
    before = sys.gettrace()
    result = yield
    if sys.gettrace() is not before:
        sys.settrace(before)
        pytest.fail("the test has replaced the tracer: put back that of sys.gettrace()")
    return result
