"""Which addresses lead inside: the tables, every wrapping, and properties over all addresses."""

from __future__ import annotations

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.web import Reach, address_fault, address_of, leads_inside

ZERO = ".".join("0000")
"""Written so that nobody takes it for an address to listen at."""

INSIDE_4 = [
    ZERO, "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1", "127.255.255.255", "168.63.129.16", "169.254.0.1", "169.254.169.254", "172.16.0.0",
    "172.31.255.255", "192.0.0.1", "192.0.0.9", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.0",
    "192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.255", "224.0.0.1",
    "239.255.255.250", "240.0.0.1", "255.255.255.255",
]  # fmt: skip
PUBLIC_4 = [
    "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
    "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0",
    "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0",
    "223.255.255.255",
]  # fmt: skip
INSIDE_6 = [
    "::", "::1", "::127.0.0.1", "::1.1.1.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1",
    "::ffff:0:1.1.1.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "64:ff9b:1::101:101",
    "100::1",
    "1fff:ffff::1", "2001::1", "2001:0:0:0:0:0:80ff:fffe", "2001:1::1", "2001:10::1", "2001:20::1",
    "2001:1ff::1", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::", "2002:a9fe:a9fe::1",
    "2606:4700::5efe:7f00:1", "2606:4700::200:5efe:a00:1", "3fff::1", "4000::1", "5f00::1", "fc00::1",
    "fd00:ec2::254", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ffff::1",
]  # fmt: skip
PUBLIC_6 = [
    "2606:4700::1111", "2000::1", "2001:200::1", "2001:4860:4860::8888", "2001:db7::1", "2001:db9::1",
    "3ffe::1",
    "3fff:1000::1", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::", "2606:4700::5efe:101:101",
    "2606:4700::5eff:7f00:1",
]  # fmt: skip

SPELLINGS = [
    ("127.0.0.1", "127.0.0.1"), ("127.0.0.1.", "127.0.0.1"), ("127.1", "127.0.0.1"), ("127.0.1", "127.0.0.1"),
    ("2130706433", "127.0.0.1"), ("0x7f000001", "127.0.0.1"), ("0X7F.1", "127.0.0.1"),
    ("0177.0.0.1", "127.0.0.1"), ("017700000001", "127.0.0.1"), ("0x7f.0x0.0x0.0x1", "127.0.0.1"),
    ("0", ZERO), ("1.1.1.1", "1.1.1.1"), ("0x", ZERO), ("256.1.1.1", ZERO), ("1.0X", ZERO),
    ("999", "0.0.3.231"), ("1.2.3.4.5", ZERO),
    ("4294967296", ZERO), ("08.1.1.1", ZERO),
    ("example.1", ZERO), ("a.b.0x1f", ZERO), ("::1", "::1"),
    ("fe80::1%25lo", "fe80::1"),
    ("::ffff:7f00:1", "::ffff:127.0.0.1"),
]  # fmt: skip
NAMES = [
    "example.com",
    "1.example",
    "0x7f.example",
    "a1",
    "x0x",
    "fe80",
    "xn--1-0ga",
    "127.0.0.1x",
    "",
    "1.1.1.z",
    "::zz",
]

V4 = st.ip_addresses(v=4)
V6 = st.ip_addresses(v=6)


@pytest.mark.parametrize("address", INSIDE_4 + INSIDE_6)
def test_an_address_that_leads_inside_is_connected_to_only_where_that_is_allowed(address: str) -> None:
    fault = address_fault(address, Reach.public)
    assert fault is not None
    assert (fault.why, "allow_private" in fault.hint) == ("is private or this machine's own", True)
    assert address_fault(address, Reach.private) is None
    assert address_fault(address, Reach.any) is None


@pytest.mark.parametrize("address", PUBLIC_4 + PUBLIC_6)
def test_a_public_address_is_connected_to_unless_only_private_ones_are(address: str) -> None:
    assert address_fault(address, Reach.public) is None
    assert address_fault(address, Reach.any) is None
    fault = address_fault(address, Reach.private)
    assert fault is not None
    assert "plain http is for private addresses only" in fault.why


@pytest.mark.parametrize("reach", [Reach.public, Reach.private])
@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "127.1", "%lo", "::1::", "1.1.1.1/8"])
def test_what_is_no_address_is_not_connected_to(text: str, reach: Reach) -> None:
    fault = address_fault(text, reach)
    assert fault is not None
    assert "no address" in fault.why


@pytest.mark.parametrize(("host", "address"), SPELLINGS)
def test_an_address_is_known_in_every_spelling(host: str, address: str) -> None:
    assert str(address_of(host)) in (address, str(ipaddress.ip_address(address)))


@pytest.mark.parametrize("host", NAMES)
def test_a_name_is_no_address(host: str) -> None:
    assert address_of(host) is None


@given(V4)
def test_what_python_knows_as_not_global_is_inside_and_so_is_every_wrapping_of_it(
    address: ipaddress.IPv4Address,
) -> None:
    inside = leads_inside(address)
    assert inside or (address.is_global and not address.is_multicast)
    packed = int(address)
    nat64 = ipaddress.IPv6Address((0x64_FF9B << 96) | packed)
    mapped = ipaddress.IPv6Address((0xFFFF << 32) | packed)
    six_to_four = ipaddress.IPv6Address((0x2002 << 112) | (packed << 80))
    isatap = ipaddress.IPv6Address((0x2606_4700 << 96) | (0x5EFE << 32) | packed)
    assert {leads_inside(wrapped) for wrapped in (nat64, mapped, six_to_four, isatap)} == {inside}
    translated = ipaddress.IPv6Address((0xFFFF << 48) | packed)
    assert leads_inside(translated)
    assert leads_inside(ipaddress.IPv6Address(packed))


@given(V6)
def test_an_address_outside_of_what_is_given_out_is_inside(address: ipaddress.IPv6Address) -> None:
    if not leads_inside(address):
        assert address.is_global
        assert not address.is_multicast
        assert address.packed[0] >> 5 == 1 or address.ipv4_mapped or str(address).startswith("64:ff9b::")


@given(
    V4, st.sampled_from(["{0}.{1}.{2}.{3}", "{n}", "0x{n:x}", "0{n:o}", "0x{0:x}.0{1:o}.{rest}", "{0}.{low}"])
)
def test_whatever_the_system_reads_as_an_address_is_read_as_the_same(
    address: ipaddress.IPv4Address, form: str
) -> None:
    parts, number = address.packed, int(address)
    host = form.format(*parts, n=number, rest=number & 0xFFFF, low=number & 0xFF_FFFF)
    found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    assert {item[4][0] for item in found} == {str(address_of(host))}
    assert address_of(host) == address
