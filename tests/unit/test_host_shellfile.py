"""Settings files of shells: read as a shell would, as far as it needs no shell."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.boot.bootloader import read_boot_loader, read_families
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.shellfile import parse_assignments, unquote
from tests.hosttrees import write


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"quiet splash"', "quiet splash"),
        ("'single $HOME'", "single $HOME"),
        ("plain # a comment", "plain"),
        ("in#side", "in#side"),
        ('"say \\"hi\\""', 'say "hi"'),
        ('"a\\b"', "a\\b"),
        ("a\\ b", "a b"),
        ("\"one\"'two'three", "onetwothree"),
        ('"never closed', "never closed"),
        ("", ""),
        ("last\\", "last\\"),
    ],
)
def test_quotes(text: str, value: str) -> None:
    assert unquote(text) == value


@given(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=40))
def test_a_word_quoted_for_a_shell_is_read_back(text: str) -> None:
    assert unquote(shlex.quote(text)) == text


def test_assignments() -> None:
    text = '# A=0\nA=1\n export B="two words"\nA=3\nB+=" and more"\n1C=x\nD E=x\n=x\nF\nG=\n'
    assert parse_assignments(text) == {"A": "3", "B": "two words and more", "G": ""}


@given(st.text())
def test_any_text(text: str) -> None:
    for name in parse_assignments(text):
        assert name.isascii()


DEBIAN = {"etc/os-release": 'ID=ubuntu\nID_LIKE="debian"\nPRETTY_NAME="Ubuntu 24.04 LTS"\n'}
FEDORA = {"usr/lib/os-release": 'ID=rocky\nID_LIKE="rhel centos fedora"\nNAME="Rocky Linux"\n'}
SEES_KERNEL = {".dockerenv": "", "proc/2/comm": "kthreadd\n"}
GRUB = {"etc/default/grub": 'GRUB_CMDLINE_LINUX=""\n'}


@pytest.mark.parametrize(
    ("files", "means", "name", "reason"),
    [
        (DEBIAN | GRUB | {"usr/sbin/update-grub": "#!"}, "grub-dropin", "GRUB", ""),
        (DEBIAN | GRUB, "by-hand", "GRUB", "grub-mkconfig"),
        (
            FEDORA | GRUB | {"usr/sbin/grubby": "\x7fELF", "boot/loader/entries/a-1.conf": "options quiet\n"},
            "grubby",
            "GRUB with boot loader entries",
            "",
        ),
        ({"boot/loader/loader.conf": "", "etc/kernel/cmdline": "quiet"}, "by-hand", "systemd-boot", "/etc/kernel/"),
        ({"boot/firmware/cmdline.txt": "quiet"}, "by-hand", "the Raspberry Pi's firmware", "cmdline.txt"),
        ({"run/ostree-booted": ""}, "by-hand", "OSTree", "rpm-ostree kargs"),
        (DEBIAN | GRUB | {".dockerenv": ""}, "none", "", "a container or its image"),
        (DEBIAN, "none", "", "no files of a boot loader"),
        ({}, "none", "", "no files of a boot loader"),
    ],
)
def test_boot_loaders(tmp_path: Path, files: dict[str, str], means: str, name: str, reason: str) -> None:
    loader = read_boot_loader(HostRoot(write(tmp_path, files)))
    assert (loader.means, loader.name) == (means, name)
    assert reason in loader.reason
    assert bool(loader.reason) == (means in ("by-hand", "none"))


@pytest.mark.parametrize(("hypervisor", "machine"), [(None, "host"), ("KVM", "KVM guest")])
def test_a_machine_that_sees_kernel_threads_is_not_called_a_container(
    tmp_path: Path, hypervisor: str | None, machine: str
) -> None:
    loader = read_boot_loader(HostRoot(write(tmp_path, DEBIAN | GRUB | SEES_KERNEL)), hypervisor)
    assert (loader.means, loader.in_container) == ("none", True)
    assert loader.reason.startswith(f"this {machine} runs from a container's image, so")


def test_distributions(tmp_path: Path) -> None:
    assert read_families(HostRoot(write(tmp_path / "u", DEBIAN))) == ("ubuntu", "debian")
    assert read_families(HostRoot(write(tmp_path / "r", FEDORA))) == ("rocky", "rhel", "centos", "fedora")
    assert read_families(HostRoot(tmp_path / "n")) == ()
