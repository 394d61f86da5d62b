"""For this folder without the wheel, which installs the same as a plugin."""

from paybox_pytest import bench, paybox, paybox_options, rig  # noqa: F401
