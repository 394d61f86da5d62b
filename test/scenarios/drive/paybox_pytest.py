"""Fixtures of pytest: `bench`, and for each test a `rig` of its own, which is also called `paybox`.

With PAYBOX_BENCH_URL they use a server that runs, else they start one. PAYBOX_REPORTS=DIR keeps the evidence of each test.
The wheel installs them as a plugin; where this folder is copied, conftest.py imports them.
"""

import os
import pathlib

import pytest

from paybox_bench import Bench, serving


@pytest.fixture(scope="session")
def bench():
    """The control server: the one in PAYBOX_BENCH_URL, else one of this session's own."""
    if "PAYBOX_BENCH_URL" in os.environ:
        yield Bench()
    else:
        with serving() as server:
            yield server


@pytest.fixture
def paybox_options():
    """Override it to open each rig otherwise, as {"callback_url": "http://127.0.0.1:5000/sync", "boxes": 2}."""
    return {}


@pytest.fixture
def rig(bench, paybox_options, request):
    """A gateway and boxes for one test."""
    with bench.rig(**paybox_options) as opened:
        yield opened
        if "PAYBOX_REPORTS" in os.environ:
            name = request.node.name.replace("/", "-")
            opened.save_report(pathlib.Path(os.environ["PAYBOX_REPORTS"], f"{name}.html"))


@pytest.fixture
def paybox(rig):
    """The rig of this test, by the name of the library for JavaScript."""
    return rig
