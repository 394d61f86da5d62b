"""Keywords of Robot Framework, see paybox.resource."""

from paybox_bench import Bench


class paybox_robot:
    ROBOT_LIBRARY_SCOPE = "SUITE"

    def __init__(self, url="", token=""):
        self._bench = Bench(url or None, token or None)
        self._rig = None

    def open_rig(self, **options):
        """Opens a gateway and boxes; the keywords after it are about them."""
        self._rig = self._bench.open_rig(**options)
        return self._rig.about

    def end_rig(self):
        if self._rig:
            self._rig.end()
        self._rig = None

    def push_order(self, amount: int, content):
        """Sends a QR to the box: orderId, qrCode…"""
        return self._rig.push(amount, content)

    def pay_order(self, amount: int, content):
        return self._rig.pay(amount, content)

    def box_should(self, box: int = 1, **expected):
        """Waits until all of it is so, as state=paid within=5s."""
        self._rig.expect(box=box, **expected)

    def press_key(self, key, box: int = 1):
        self._rig.press(key, box)

    def save_report(self, file):
        self._rig.save_report(file)

    def scenario_should_pass(self, *names):
        run = self._bench.run(*names)
        if run["state"] != "passed":
            raise AssertionError(f"{run['state']}, {run['where']}: {run['reason']}")
