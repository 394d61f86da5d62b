"""Drives `paybox bench serve` from Python 3.9 or newer, with nothing but its standard library.

    with serving() as bench, bench.rig(boxes=2) as rig:
        order = rig.push(amount=50000, content="DH1")
        rig.expect(state="showing", qr=order["qrCode"])

Steps are those of a scenario file, word for word: `paybox config schema scenario` prints all of them.
"""

import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

START_TIMEOUT_S = 60
# A proxy of the environment does not reach what listens on this machine.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
ANSWER_TIMEOUT_S = 600
START_FIX = (
    "install it where the tests run: npm install --save-dev ./paybox-VERSION.tgz, or by the name that the manual has; "
    "PAYBOX names another one, as PAYBOX='npx --no --prefix ../paybox -- paybox'"
)


class NotAsExpected(AssertionError):
    """A step was done, and is not as expected: what was expected and what is."""

    screen = None


class BenchError(RuntimeError):
    """The bench refuses, and says what to do; `status` is that of HTTP."""

    def __init__(self, status, error, fix):
        super().__init__(f"{error}; {fix}" if fix else error)
        self.status = status


class Bench:
    """A control server that runs, by default the one in PAYBOX_BENCH_URL and PAYBOX_BENCH_TOKEN."""

    def __init__(self, url=None, token=None):
        self.url = (url or os.environ.get("PAYBOX_BENCH_URL", "http://127.0.0.1:8820")).rstrip("/")
        self._token = token or os.environ.get("PAYBOX_BENCH_TOKEN")

    def open(self, method, path, body=None):
        """An answer to read from. A refusal is raised."""
        request = urllib.request.Request(self.url + path, method=method)
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        try:
            return DIRECT.open(request, timeout=ANSWER_TIMEOUT_S)
        except urllib.error.HTTPError as refusal:
            with refusal:
                said = json.loads(refusal.read())
            if refusal.code == 409:
                raise NotAsExpected(said["error"]) from None
            raise BenchError(refusal.code, said["error"], said["fix"]) from None

    def read(self, path):
        """The bytes at a path."""
        with self.open("GET", path) as answer:
            return answer.read()

    def json(self, method, path, body=None):
        with self.open(method, path, body) as answer:
            return json.loads(answer.read() or "null")

    def scenarios(self):
        """The names that `run` takes."""
        return [scenario["name"] for scenario in self.json("GET", "/scenarios")["scenarios"]]

    def run(self, *scenarios, on_event=None, **options):
        """Runs scenarios to their end: names, or texts of scenario files. The run, with `state` and `reason`."""
        order = [{"yaml": text} if "\n" in text else text for text in scenarios]
        links = self.json("POST", "/runs", {"scenarios": order, **options})["links"]
        with self.open("GET", links["events"]) as lines:
            for line in lines:
                if on_event and line.startswith(b"data: "):
                    on_event(json.loads(line[len(b"data: "):]))
        return self.json("GET", links["self"])

    @contextlib.contextmanager
    def rig(self, **options):
        """A gateway and boxes that stay up for a block of code."""
        rig = self.open_rig(**options)
        try:
            yield rig
        finally:
            rig.end()

    def open_rig(self, callback_url=None, **options):
        """`callback_url`: where the gateway sends its callbacks, the shop's transaction-sync; boxes=2, time="virtual"…"""
        if callback_url is not None:
            options["callbackUrl"] = callback_url
        return Rig(self, self.json("POST", "/rigs", options))


class Rig:
    """A gateway, boxes and a partner's server; `about` has addresses and credentials."""

    def __init__(self, bench, about):
        self.about = about
        self._bench = bench
        self._path = about["links"]["self"]
        self._newest_payment = None

    def step(self, **step):
        """One step, as in a scenario file; what it gave. Raises NotAsExpected."""
        return self._bench.json("POST", f"{self._path}/steps", step)["result"]

    def push(self, amount, content, **more):
        """Makes an order and sends its QR to the box: orderId, qrCode…"""
        return self.step(push={"amount": amount, "content": content, **more})

    def pay(self, amount, content, **more):
        """A simulated payment: transactionId…"""
        paid = self.step(pay={"amount": amount, "content": content, **more})
        self._newest_payment = paid.get("transactionId") or self._newest_payment
        return paid

    def expect(self, box=1, **expected):
        """Waits until all of it is so, as state="paid", within="5s"; callback="delivered" is that of the newest payment.

        NotAsExpected has the screen as it was, in `screen`, as a PNG file's bytes.
        """
        if isinstance(expected.get("callback"), str):
            if self._newest_payment is None:
                raise BenchError(0, "expect: callback: this rig has paid nothing with pay()", "name its payment")
            expected["callback"] = {"payment": self._newest_payment, "status": expected["callback"]}
        try:
            return self.step(box=box, expect=expected)
        except NotAsExpected as failed:
            with contextlib.suppress(Exception):
                failed.screen = self.screen(box)
            raise

    def skip(self, time):
        """Has time pass, as "30s", "5m" or "2h": at once where the rig has virtual time, else it is waited for."""
        return self.step(wait=re.sub(r"^(\d+(?:\.\d+)?) ?m$", r"\1min", time))

    def press(self, key, box=1):
        return self.step(box=box, press=key)

    def fault(self, fault, box=1):
        """Makes something go wrong, as {"box": "off"}, or right again."""
        return self.step(box=box, fault=fault)

    def screen(self, box=1):
        """What the box shows, as a PNG file."""
        return self._bench.read(f"{self._path}/boxes/{box}/screen.png")

    def text(self, box=1):
        """The words on the screen."""
        return self._bench.read(f"{self._path}/boxes/{box}/screen.txt").decode()

    def status(self, box=1):
        return self._bench.json("GET", f"{self._path}/boxes/{box}/status")

    def callbacks(self):
        """What the gateway tells of callbacks, and what reached the bench's server for the partner."""
        return self._bench.json("GET", f"{self._path}/callbacks")

    def save_report(self, file):
        """Writes the evidence so far as a page; makes its folder."""
        pathlib.Path(file).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(file).write_bytes(self._bench.read(f"{self._path}/report.html"))

    def reset(self):
        """Forgets all orders, payments, callbacks, faults and variables; addresses and credentials stay."""
        self._bench.json("POST", f"{self._path}/reset")
        self._newest_payment = None

    def end(self):
        self._bench.json("DELETE", self._path)


@contextlib.contextmanager
def serving(*options):
    """A control server of one's own, for a block of code. PAYBOX says how the program is called: `npx --no -- paybox`,
    which fetches nothing, if not. The server ends with this process, however that ends."""
    program = shlex.split(os.environ.get("PAYBOX", "npx --no -- paybox"))
    with tempfile.TemporaryDirectory() as folder:
        ready = pathlib.Path(folder, "ready.json")
        command = [*program, "bench", "serve", "--port", "0", "--ready-file", str(ready), "--until-input-ends", *options]
        try:
            server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        except OSError as missing:
            raise BenchError(0, f"{shlex.join(command)} did not start: {missing}", START_FIX) from None
        # npx hands no signal on to what it has started: the server tells its own number.
        pid = server.pid
        try:
            deadline = time.monotonic() + START_TIMEOUT_S
            while not ready.exists():
                if server.poll() is not None or time.monotonic() > deadline:
                    raise BenchError(0, f"{shlex.join(command)} did not start", START_FIX)
                time.sleep(0.05)
            told = json.loads(ready.read_text())
            pid = told["pid"]
            yield Bench(told["url"])
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            server.stdin.close()
            server.wait()
