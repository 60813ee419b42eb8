"""Packets that a test makes or damages octet by octet."""

import struct


def checksum(octets: bytes) -> int:
    """The Internet checksum (RFC 1071), word by word."""
    total: int = sum(struct.unpack(f">{(len(octets) + 1) // 2}H", octets + bytes(len(octets) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def with_checksums(octets: bytes) -> bytes:
    """Return the packet with both checksums made right, wherever its header says they are."""
    packet = bytearray(octets)
    ihl = (packet[0] & 15) * 4
    packet[10:12] = b"\0\0"
    packet[10:12] = checksum(bytes(packet[:ihl])).to_bytes(2, "big")
    packet[ihl + 16 : ihl + 18] = b"\0\0"
    tcp = bytes(packet[ihl:])
    pseudo = bytes(packet[12:20]) + bytes((0, packet[9])) + len(tcp).to_bytes(2, "big")
    packet[ihl + 16 : ihl + 18] = checksum(pseudo + tcp).to_bytes(2, "big")
    return bytes(packet)


def changed(octets: bytes, at: int, by: int = 1) -> bytes:
    """Return the octets with one of them XORed."""
    found = bytearray(octets)
    found[at] ^= by
    return bytes(found)
