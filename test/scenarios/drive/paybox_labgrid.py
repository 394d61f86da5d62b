"""A driver of labgrid (0.4 or newer): the rig of a bench, with emulated boxes or with those of the lab.

    targets:
      main:
        resources:
          PayboxBench:
            url: http://127.0.0.1:8820
        drivers:
          PayboxRigDriver:
            options: { target: at, gateway: "http://192.0.2.10:8800", box: ["http://192.0.2.11:8810"] }
    imports:
      - paybox_labgrid.py
"""

import attr
from labgrid.driver import Driver
from labgrid.factory import target_factory
from labgrid.resource import Resource
from labgrid.step import step

from paybox_bench import Bench


@target_factory.reg_resource
@attr.s(eq=False)
class PayboxBench(Resource):
    url = attr.ib(default="http://127.0.0.1:8820", validator=attr.validators.instance_of(str))


@target_factory.reg_driver
@attr.s(eq=False)
class PayboxRigDriver(Driver):
    bindings = {"bench": PayboxBench}
    options = attr.ib(factory=dict, validator=attr.validators.instance_of(dict))

    def on_activate(self):
        self._rig = Bench(self.bench.url).open_rig(**self.options)

    def on_deactivate(self):
        self._rig.end()

    @Driver.check_active
    @step(args=["amount", "content"])
    def push(self, amount, content):
        return self._rig.push(amount, content)

    @Driver.check_active
    @step(args=["amount", "content"])
    def pay(self, amount, content):
        return self._rig.pay(amount, content)

    @Driver.check_active
    @step(args=["expected"])
    def expect(self, **expected):
        self._rig.expect(**expected)

    @Driver.check_active
    @step()
    def screen(self):
        return self._rig.screen()
