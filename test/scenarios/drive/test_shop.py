"""Run with `pytest --junitxml=shop.xml` in this folder."""

import base64
import json
import urllib.request

import pytest

from paybox_bench import NotAsExpected


def test_an_order_is_paid(stand):
    order = stand.push(amount=50000, content="DH1")
    stand.expect(screen="payment", text="50.000 ₫", qr=order["qrCode"])
    payment = stand.pay(amount=50000, content="DH1")
    stand.expect(state="paid", qr="none", callback={"payment": payment["transactionId"]})
    assert stand.status()["lastPayment"]["orderId"] == order["orderId"]
    assert stand.screen().startswith(b"\x89PNG")


def test_a_program_of_your_own_is_the_partner(stand):
    partner, service = stand.about["partner"], stand.about["gateway"]["baseUrl"]
    login = base64.b64encode(f"{partner['username']}:{partner['password']}".encode()).decode()
    request = urllib.request.Request(f"{service}/api/token_generate", method="POST")
    request.add_header("Authorization", f"Basic {login}")
    with urllib.request.urlopen(request) as answer:
        assert json.loads(answer.read())["token_type"] == "Bearer"


def test_what_is_not_so_fails_with_a_reason(stand):
    with pytest.raises(NotAsExpected, match='state: expected "paid", is "idle"'):
        stand.expect(state="paid", within="1s")


def test_a_whole_scenario(bench):
    run = bench.run("cancelled-order")
    assert run["state"] == "passed", f"{run['where']}: {run['reason']}"
