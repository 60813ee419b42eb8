"""UHD in the process from which `RadioProcess` forks its radios, so that it is imported once. Not for other imports.

UHD loads its modules and takes its settings when it is imported.
"""

import os

from tests.harness.radio_process import MODULES

os.environ["UHD_MODULE_PATH"] = os.fspath(MODULES)
os.environ["UHD_LOG_CONSOLE_LEVEL"] = "warning"

import uhd  # noqa: F401
