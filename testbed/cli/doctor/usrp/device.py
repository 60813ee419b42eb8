"""The radios themselves: whether they answer, are two, and take the scenario's settings.

Read first: `flowgraphs/frontend.py`, which makes the settings and reads them back.
"""

from testbed.cli.doctor.look import Check
from testbed.cli.doctor.usrp.case import ON_TIME, SAMPLE_BYTES, Case, Radio, made
from testbed.cli.doctor.usrp.ethernet import link_octets


def answers(_case: Case, radio: Radio) -> Check:
    """Whether UHD finds the device and can open it."""
    answer = radio.answer
    seen = answer.fault or f"{answer.name}, serial {answer.serial}"
    remedy = f"check cable and power; `uhd_find_devices --args {radio.args!r}` must list it, and one program at a time"
    return radio.check("answer", bool(answer.fault), seen, f"{remedy} has it")


def settings(case: Case, radio: Radio) -> Check | None:
    """Whether the device has the scenario's rate, carriers and gains, read back after they were set."""
    answer = radio.answer
    if answer.settings_fault is None:
        return None
    if answer.settings_fault:
        fault, _, remedy = answer.settings_fault.removeprefix(f"USRP {radio.args!r}: ").partition(": ")
        return radio.check("settings", True, fault, remedy or "change the scenario's radio, or --set radio.…")
    tx, rx = answer.tx, answer.rx
    seen = (
        f"{case.rate_sps / 1e6:g} Msps; sends at {tx['carrier_hz'] / 1e6:g} MHz, {tx['gain_db']:g} dB; receives at "
        f"{rx['carrier_hz'] / 1e6:g} MHz, {rx['gain_db']:g} dB; master clock {tx['master_clock_hz'] / 1e6:g} MHz"
    )
    return radio.check("settings", False, seen, "")


def reference(case: Case, radio: Radio) -> Check | None:
    """Whether the device has locked to a reference that is not its own."""
    source, answer = radio.argument("clock_source") or case.clock_source, radio.answer
    if source in (None, "internal") or answer.fault:
        return None
    locked = answer.ref_locked is not False
    seen = answer.clock_fault or (f"locked to {source}" if locked else f"not locked to {source}")
    fault = bool(answer.clock_fault) or not locked
    return radio.check("reference", fault, seen, "feed 10 MHz to its REF input, or leave radio.clock_source out")


def link_rate(case: Case, radio: Radio) -> Check | None:
    """Whether the samples of one direction fit the connection."""
    carried = radio.answer.link_octets or link_octets(case, radio)
    if carried is None:
        return None
    need = case.rate_sps * SAMPLE_BYTES
    seen = f"{need / 1e6:.4g} of {carried / 1e6:.4g} MB/s each way"
    highest = carried / SAMPLE_BYTES
    return radio.check("samples", need > carried, seen, f"--set radio.rate_sps={highest:.0f}, or a faster connection")


def warnings(_case: Case, radio: Radio) -> Check | None:
    """Whether UHD opened the device without a warning."""
    said = radio.answer.said
    if radio.answer.fault:
        return None
    return radio.check("UHD's warnings", bool(said), said[0] if said else "none", "as UHD says", (ON_TIME,))


def scenario(case: Case) -> Check | None:
    """Whether the scenario's radio is possible at all, on any device."""
    faults = [radio.answer.scenario_fault for radio in case.radios if radio.answer.settings_fault is not None]
    if not faults:
        return None
    fault, _, remedy = next(filter(None, faults), "").rpartition(": ")
    return made("scenario", bool(remedy), fault or "its frames fit the PHY and the sample rate", remedy)


def two_devices(case: Case) -> Check | None:
    """Whether the two stations have two devices, each named without doubt."""
    for radio in case.radios:
        serials = sorted({fit.get("serial") or fit.get("addr", "?") for fit in radio.answer.fits})
        if len(serials) > 1:
            remedy = f"name it by its serial number, as in serial={serials[0]}"
            return made("two devices", True, f"{radio.args!r} fits {', '.join(serials)}", remedy)
    if len(case.radios) < 2 or any(radio.answer.fault for radio in case.radios):
        return None
    first, second = case.radios
    same = first.answer.serial == second.answer.serial and _air(first) == _air(second)
    seen = f"both are serial {first.answer.serial}" if same else f"{first.answer.serial}, {second.answer.serial}"
    return made("two devices", same, seen, "give each station its own: --radio serial=… --radio serial=…")


def _air(radio: Radio) -> str | None:
    return radio.argument("air")
