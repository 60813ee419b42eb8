"""The sliding-window erasure code: coded payloads of any few packets, and the decoder that gives lost packets again.

Read first: RFC 8681 for the idea (sliding window, no blocks), RFC 5510 for the field. A packet's symbol is its length
(two octets) and its octets, padded with zeros to the longest of the combination. A combination is the sum of its
members' symbols, octet by octet in GF(256) with polynomial 0x11D, each times 1 / (x + y): x = number mod 128,
y = 128 + index. That is a Cauchy matrix, so any m combinations of the same m packets with different indexes restore
all of them. Combinations of different sets mix: the decoder solves whatever equations determine.

`Field` computes with octets: `bytes.translate` multiplies, `int` adds. `Counting` obeys the same contract for packets
of virtual time, which have a size and no octets: its payloads remember their members.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence, Sized
from typing import Final, cast

from mypy_extensions import mypyc_attr
from typing_extensions import override

#: of a combination: highest minus lowest number, plus 1, at most; so also the most members
MAX_SPAN: Final = 64
#: indexes are 0 to 127
MAX_INDEXES: Final = 128
#: a decoder holds so many equations, each with so many unknown packets
MAX_EQUATIONS: Final = 256
#: octets of the length field
LENGTH_BYTES: Final = 2
MAX_PACKET_BYTES: Final = 0xFFFF

#: a packet and its number
Member = tuple[int, Sized]
#: a factor, and the value of a packet or of an equation, as a `Code` keeps it
Term = tuple[int, object]

_NEVER: Final = 1 << 61


def _products() -> list[bytes]:
    """The field's multiplication table, a row for each factor."""
    double = bytes([value << 1 if value < 128 else (value << 1) ^ 0x11D for value in range(256)])
    one = int.from_bytes(range(256), "little")
    rows = [bytes(256)]
    for factor in range(1, 256):
        row = rows[factor >> 1].translate(double)
        rows.append((int.from_bytes(row, "little") ^ one).to_bytes(256, "little") if factor & 1 else row)
    return rows


_PRODUCTS: Final = _products()
_INVERSES: Final = bytes([0] + [row.index(1) for row in _PRODUCTS[1:]])


def coefficient(seq: int, index: int) -> int:
    """Return a packet's factor in combination `index`; never 0."""
    return _INVERSES[128 | ((seq & 127) ^ index)]


@mypyc_attr(allow_interpreted_subclasses=True)
class Code(ABC):
    """Makes combinations; the other methods are the arithmetic of `Decoder`, on values of the code's own type."""

    @abstractmethod
    def combine(self, members: Sequence[Member], index: int) -> Sized:
        """Return combination `index` of packets in ascending order: as long as the longest, plus 2 octets.

        Raises ValueError for members or an index that no combination can have.
        """

    @abstractmethod
    def of_payload(self, payload: Sized) -> object:
        """Return the value of a coded payload."""

    @abstractmethod
    def of_packet(self, packet: Sized) -> object:
        """Return the value of a packet that has come."""

    @abstractmethod
    def total(self, terms: Sequence[Term], unknown: Collection[int]) -> object:
        """Return the sum of values times factors, which is a combination of the `unknown` packets."""

    @abstractmethod
    def packet(self, seq: int, value: object) -> Sized:
        """Return the packet with this value; raises ValueError if none has it."""


class Field(Code):
    """Octets; a value is a symbol, without or with some of its padding."""

    @override
    def combine(self, members: Sequence[Member], index: int) -> Sized:
        _check([seq for seq, _ in members], index)
        terms = [(coefficient(seq, index), self.of_packet(packet)) for seq, packet in members]
        return cast(Sized, self.total(terms, ()))

    @override
    def of_payload(self, payload: Sized) -> object:
        return payload

    @override
    def of_packet(self, packet: Sized) -> object:
        return _length_of(packet).to_bytes(LENGTH_BYTES, "big") + cast(bytes, packet)

    @override
    def total(self, terms: Sequence[Term], unknown: Collection[int]) -> object:
        total = width = 0
        for factor, value in terms:
            octets = cast(bytes, value)
            width = max(width, len(octets))
            # padding is at the number's high end, where it costs nothing
            total ^= int.from_bytes(octets.translate(_PRODUCTS[factor]), "little")
        return total.to_bytes(width, "little")

    @override
    def packet(self, seq: int, value: object) -> Sized:
        octets = cast(bytes, value)
        end = LENGTH_BYTES + int.from_bytes(octets[:LENGTH_BYTES], "big")
        if len(octets) < end or octets.count(0, end) != len(octets) - end:
            raise ValueError(f"packet {seq} contradicts its length")
        return octets[LENGTH_BYTES:end]


class CountedCombination:
    """A coded payload that has a size and remembers its members."""

    __slots__ = ("members", "nbytes")

    def __init__(self, nbytes: int, members: dict[int, Sized]) -> None:
        self.nbytes = nbytes
        self.members = members

    def __len__(self) -> int:
        return self.nbytes


class Counting(Code):
    """The stand-in for packets without octets; a value is the packets that it is a combination of."""

    @override
    def combine(self, members: Sequence[Member], index: int) -> Sized:
        _check([seq for seq, _ in members], index)
        longest = max([_length_of(packet) for _, packet in members])
        return CountedCombination(LENGTH_BYTES + longest, dict(members))

    @override
    def of_payload(self, payload: Sized) -> object:
        return cast(CountedCombination, payload).members

    @override
    def of_packet(self, packet: Sized) -> object:
        return {}

    @override
    def total(self, terms: Sequence[Term], unknown: Collection[int]) -> object:
        total: dict[int, Sized] = {}
        for _, value in terms:
            packets = cast("dict[int, Sized]", value)
            total.update({seq: packet for seq, packet in packets.items() if seq in unknown})
        return total

    @override
    def packet(self, seq: int, value: object) -> Sized:
        packet = cast("dict[int, Sized]", value).get(seq)
        if packet is None:
            raise ValueError(f"packet {seq} was not combined")
        return packet


class _Equation:
    """The sum of unknown packets times coefficients is a value; its pivot has coefficient 1 and is in no other."""

    __slots__ = ("coefficients", "value")

    def __init__(self, coefficients: dict[int, int], value: object) -> None:
        #: by number of the unknown packet; none is 0
        self.coefficients = coefficients
        self.value = value


class Decoder:
    """A receiver's equations, solved as they come (Gauss-Jordan).

    Give it packets that come (`known`) and coded frames (`equation`) in any order, `poll` after each until None, and
    `forget` what is past: packets are kept until then. It holds no more than MAX_EQUATIONS equations of MAX_EQUATIONS
    unknown packets each; the oldest leave.
    """

    def __init__(self, code: Code) -> None:
        #: restored packets that could not be; only forged frames make them
        self.contradictions = 0
        self._code = code
        self._known: dict[int, Sized] = {}
        self._restored: dict[int, Sized] = {}
        #: by pivot, the oldest first
        self._equations: dict[int, _Equation] = {}
        #: numbers below are forgotten
        self._floor = -_NEVER
        #: no unknown packet of an equation is below or above these
        self._lowest = _NEVER
        self._highest = -_NEVER

    @property
    def held(self) -> int:
        """The number of equations held."""
        return len(self._equations)

    def known(self, seq: int, packet: Sized) -> None:
        """Take a packet that has come. Raises ValueError for one longer than MAX_PACKET_BYTES."""
        _length_of(packet)
        self._restored.pop(seq, None)
        if seq < self._floor or seq in self._known:
            return
        self._known[seq] = packet
        if seq > self._highest or seq < self._lowest:
            return
        term = self._code.of_packet(packet)
        own = self._equations.pop(seq, None)
        if own is not None:
            del own.coefficients[seq]
            self._insert(own.coefficients, [(1, own.value), (1, term)])
            return
        for pivot, equation in list(self._equations.items()):
            factor = equation.coefficients.pop(seq, 0)
            if factor:
                equation.value = self._code.total([(1, equation.value), (factor, term)], equation.coefficients)
                self._settle(pivot, equation)

    def equation(self, seqs: Sequence[int], index: int, payload: Sized) -> None:
        """Take combination `index` of packets in ascending order; one with a forgotten packet has no effect.

        Raises ValueError, and changes nothing, if no packets can have been combined so.
        """
        _check(seqs, index)
        if len(payload) < LENGTH_BYTES:
            raise ValueError(f"a coded payload has {LENGTH_BYTES} octets or more, not {len(payload)}")
        if seqs[0] < self._floor:
            return
        room = len(payload) - LENGTH_BYTES
        unknown: dict[int, int] = {}
        known: list[tuple[int, Sized]] = []
        for seq in seqs:
            packet = self._known.get(seq)
            if packet is None:
                unknown[seq] = coefficient(seq, index)
            elif len(packet) <= room:
                known.append((coefficient(seq, index), packet))
            else:
                raise ValueError(f"packet {seq} is longer than its combination")
        if not unknown:
            return
        terms: list[Term] = [(1, self._code.of_payload(payload))]
        terms += [(factor, self._code.of_packet(packet)) for factor, packet in known]
        self._insert(unknown, terms)

    def poll(self) -> Member | None:
        """Return the next restored packet and its number, or None; each once, and none that `known` took."""
        for seq in self._restored:
            return seq, self._restored.pop(seq)
        return None

    def forget(self, below: int) -> None:
        """Drop what is held of packets below this number; restored packets wait for `poll` all the same."""
        if below <= self._floor:
            return
        if below - self._floor <= len(self._known):
            for seq in range(self._floor, below):
                self._known.pop(seq, None)
        else:
            self._known = {seq: packet for seq, packet in self._known.items() if seq >= below}
        self._floor = below
        if below <= self._lowest:
            return
        for seq in sorted({seq for equation in self._equations.values() for seq in equation.coefficients}):
            if seq >= below:
                self._lowest = seq
                return
            self._eliminate(seq)
        self._lowest, self._highest = _NEVER, -_NEVER

    def needs(self, seqs: Sequence[int]) -> int:
        """Return how many more independent combinations of these packets would restore all that are not known.

        Forgotten ones need none.
        """
        wanted = {seq for seq in seqs if seq >= self._floor and seq not in self._known}
        deficit = len(wanted)
        reduced: dict[int, dict[int, int]] = {}
        for pivot, equation in self._equations.items():
            if pivot not in wanted:
                continue
            # an equation helps by itself, or with others, if no other packet is in it
            rest = {seq: factor for seq, factor in equation.coefficients.items() if seq not in wanted}
            for seq, other in reduced.items():
                _add(rest, rest.get(seq, 0), other)
            if rest:
                first = next(iter(rest))
                reduced[first] = _scaled(rest, _INVERSES[rest[first]])
            else:
                deficit -= 1
        return deficit

    def _insert(self, coefficients: dict[int, int], terms: list[Term]) -> None:
        """Add an equation; takes over its arguments."""
        for seq in list(coefficients):
            other = self._equations.get(seq)
            if other is not None:
                factor = coefficients[seq]
                _add(coefficients, factor, other.coefficients)
                terms.append((factor, other.value))
        if not coefficients:
            return
        # the latest packet is in the fewest other equations
        pivot = max(coefficients)
        inverse = _INVERSES[coefficients[pivot]]
        coefficients = _scaled(coefficients, inverse)
        scale = _PRODUCTS[inverse]
        value = self._code.total([(scale[factor], term) for factor, term in terms], coefficients)
        equation = _Equation(coefficients, value)
        self._substitute(pivot, equation)
        self._equations[pivot] = equation
        self._lowest = min(self._lowest, min(coefficients))
        self._highest = max(self._highest, pivot)
        self._settle(pivot, equation)
        if len(self._equations) > MAX_EQUATIONS:
            del self._equations[next(iter(self._equations))]

    def _substitute(self, seq: int, equation: _Equation) -> None:
        """Remove a packet from all equations by means of one, whose coefficient of it is 1."""
        for pivot, other in list(self._equations.items()):
            factor = other.coefficients.get(seq, 0)
            if factor:
                _add(other.coefficients, factor, equation.coefficients)
                terms = [(1, other.value), (factor, equation.value)]
                other.value = self._code.total(terms, other.coefficients)
                self._settle(pivot, other)

    def _settle(self, pivot: int, equation: _Equation) -> None:
        """Take an equation out if it is solved, or has too many unknown packets."""
        if 1 < len(equation.coefficients) <= MAX_EQUATIONS:
            return
        del self._equations[pivot]
        if len(equation.coefficients) > 1:
            return
        try:
            packet = self._code.packet(pivot, equation.value)
        except ValueError:
            self.contradictions += 1
            return
        self._known[pivot] = self._restored[pivot] = packet

    def _eliminate(self, seq: int) -> None:
        """Remove an unknown packet, and one equation with it."""
        if self._equations.pop(seq, None) is not None:
            return
        for pivot, equation in self._equations.items():
            factor = equation.coefficients.get(seq, 0)
            if factor:
                del self._equations[pivot]
                inverse = _INVERSES[factor]
                value = self._code.total([(inverse, equation.value)], equation.coefficients)
                self._substitute(seq, _Equation(_scaled(equation.coefficients, inverse), value))
                return


def _check(seqs: Sequence[int], index: int) -> None:
    if not 0 <= index < MAX_INDEXES:
        raise ValueError(f"combinations have indexes 0 to {MAX_INDEXES - 1}, not {index}")
    if not seqs or len(seqs) > MAX_SPAN or seqs[-1] - seqs[0] >= MAX_SPAN:
        raise ValueError(f"a combination has 1 to {MAX_SPAN} members within {MAX_SPAN} numbers")
    for place in range(1, len(seqs)):
        if seqs[place] <= seqs[place - 1]:
            raise ValueError("members of a combination ascend")


def _length_of(packet: Sized) -> int:
    length = len(packet)
    if length > MAX_PACKET_BYTES:
        raise ValueError(f"a packet has {MAX_PACKET_BYTES} octets at most, not {length}")
    return length


def _scaled(coefficients: dict[int, int], factor: int) -> dict[int, int]:
    products = _PRODUCTS[factor]
    return {seq: products[value] for seq, value in coefficients.items()}


def _add(to: dict[int, int], factor: int, coefficients: dict[int, int]) -> None:
    """Add coefficients times a factor; those that become 0 leave."""
    if not factor:
        return
    products = _PRODUCTS[factor]
    for seq, value in coefficients.items():
        changed = to.get(seq, 0) ^ products[value]
        if changed:
            to[seq] = changed
        else:
            del to[seq]
