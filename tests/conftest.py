"""Lets pytest explain the asserts of the modules in which rows are judged, before any test imports one."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.faults.bench", "tests.faults.rows")
