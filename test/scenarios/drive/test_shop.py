"""Run with `pytest --junitxml=shop.xml` in this folder."""

import base64
import json
import urllib.request

import pytest

from paybox_bench import BenchError, NotAsExpected


def test_an_order_is_paid(rig):
    order = rig.push(amount=50000, content="DH1")
    rig.expect(screen="payment", text="50.000 ₫", qr=order["qrCode"])
    payment = rig.pay(amount=50000, content="DH1")
    rig.expect(state="paid", qr="none", callback={"payment": payment["transactionId"]})
    assert rig.status()["lastPayment"]["orderId"] == order["orderId"]
    assert rig.screen().startswith(b"\x89PNG")


def test_a_program_of_your_own_is_the_partner(rig):
    partner, service = rig.about["partner"], rig.about["gateway"]["baseUrl"]
    login = base64.b64encode(f"{partner['username']}:{partner['password']}".encode()).decode()
    request = urllib.request.Request(f"{service}/api/token_generate", method="POST")
    request.add_header("Authorization", f"Basic {login}")
    with urllib.request.urlopen(request) as answer:
        assert json.loads(answer.read())["token_type"] == "Bearer"


def test_what_is_not_so_fails_with_a_reason(rig):
    with pytest.raises(NotAsExpected, match='state: expected "paid", is "idle"'):
        rig.expect(state="paid", within="1s")


def test_the_words_of_the_library(paybox):
    with pytest.raises(BenchError, match="has paid nothing"):
        paybox.expect(callback="delivered")
    paybox.push(amount=50000, content="DH1")
    paybox.pay(amount=50000, content="DH1")
    paybox.expect(state="paid", callback="delivered")
    paybox.skip("10ms")
    with pytest.raises(NotAsExpected) as failed:
        paybox.expect(state="idle", within="50ms")
    assert failed.value.screen.startswith(b"\x89PNG")


def test_callbacks_go_where_they_are_sent(bench):
    with bench.rig(callback_url="http://127.0.0.1:9/sync") as rig:
        rig.push(amount=50000, content="DH1")
        rig.pay(amount=50000, content="DH1")
        rig.expect(callback="pending")


def test_a_whole_scenario(bench):
    run = bench.run("cancelled-order")
    assert run["state"] == "passed", f"{run['where']}: {run['reason']}"
