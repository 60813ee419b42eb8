"""`doctor --radio`: the needs of a run on real USRPs, one function with one line of result each.

Read first: UHD's manual, "Transport Application Notes" and "USRP X3x0 Series: Host PC Configuration"; `case.py`.

Rules kept: a check is a pure function of its case, so that tests prepare faults by folders and by answers of invented
radios. A check that does not concern a radio is None. `probe.py` alone talks to radios, in child processes.
"""

from collections.abc import Iterator

from testbed.cli.doctor.look import Check
from testbed.cli.doctor.usrp import device, ethernet, host, usb
from testbed.cli.doctor.usrp.case import Case

#: of the machine
_MACHINE = (device.scenario, device.two_devices, usb.udev_rules, usb.images, usb.images_version)
_HOST = (ethernet.receive_buffer, ethernet.send_buffer, host.real_time_rights, host.governor)
#: of each radio
_RADIO = (device.answers, device.settings, device.reference, device.link_rate, usb.speed)
_NETWORK = (ethernet.route, ethernet.mtu, ethernet.rings, device.warnings)


def checks(case: Case) -> Iterator[Check]:
    """Yield the checks of a case, those of its radios first."""
    for radio in case.radios:
        for of_radio in (*_RADIO, *_NETWORK):
            found = of_radio(case, radio)
            if found is not None:
                yield found
    for of_machine in (*_MACHINE, *_HOST):
        found = of_machine(case)
        if found is not None:
            yield found
