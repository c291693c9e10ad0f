"""GRUB's menu: which entry is booted by default, and what is left alone because it is not understood."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.boot import grub
from jitter_workshop.host.boot.grub import NotUnderstood, default_entry, literal, parse_menu
from tests import madegrub

ADVANCED = "gnulinux-advanced-1>gnulinux-6.1.0-1-advanced-1"


@pytest.mark.parametrize(
    ("default", "saved", "title"),
    [
        ("0", "", "Debian GNU/Linux"),
        ("", "", "Debian GNU/Linux"),
        ("1>0", "", "Debian, with Linux 6.1.0-2"),
        ("1>1", "", "Debian, with Linux 6.1.0-1"),
        ("gnulinux-simple-1", "", "Debian GNU/Linux"),
        ("Debian GNU/Linux", "", "Debian GNU/Linux"),
        (ADVANCED, "", "Debian, with Linux 6.1.0-1"),
        ("Advanced options for Debian GNU/Linux>Debian, with Linux 6.1.0-1", "", "Debian, with Linux 6.1.0-1"),
        ("1>gnulinux-6.1.0-1-advanced-1", "", "Debian, with Linux 6.1.0-1"),
        ("${saved_entry}", "", "Debian GNU/Linux"),
        ("${saved_entry}", "1>1", "Debian, with Linux 6.1.0-1"),
        ("${saved_entry}", ADVANCED, "Debian, with Linux 6.1.0-1"),
    ],
)
def test_the_default_by_number_id_title_and_saved(default: str, saved: str, title: str) -> None:
    found = default_entry(madegrub.menu(default), saved)
    assert found.title == title
    kernel = "6.1.0-1" if title.endswith("-1") else "6.1.0-2"
    assert found.summary == f"'{title}': /boot/vmlinuz-{kernel} root=UUID=1 ro console=ttyS0,115200 quiet"
    assert found.body[: found.at].endswith(" console=ttyS0,115200 quiet")
    assert "savedefault" not in found.body
    assert "initrd\t/boot/initrd.img" in found.body[found.at :]


LINE = "/vmlinuz root=UUID=1 ro"
PLAIN = madegrub.entry("Linux", "linux-1", LINE)
SOMETIMES = f'if [ "$x" = 1 ]; then\n{madegrub.entry("Perhaps", "perhaps", LINE)}fi\n'


def doing(command: str) -> str:
    """A menu whose only entry does this before it starts Linux."""
    return madegrub.menu("0", PLAIN.replace("\tload_video\n", f"\t{command}\n"))


@pytest.mark.parametrize(
    ("menu", "reason"),
    [
        (madegrub.menu("1>7"), "is not in its menu"),
        (madegrub.menu("1>Windows"), "is not in its menu"),
        (madegrub.menu("1"), "is not an entry"),
        (madegrub.menu("0>0"), "is not an entry"),
        (madegrub.menu("6.1 Linux"), "begins with a digit"),
        (madegrub.menu("${something}"), "computed"),
        (madegrub.menu("uefi-firmware"), "only under a condition"),
        (madegrub.menu("0", SOMETIMES + PLAIN), "only under a condition"),
        (madegrub.menu("linux-1", SOMETIMES + PLAIN), "only under a condition"),
        (madegrub.menu("0", "insmod blscfg\nblscfg\n"), "blscfg"),
        (madegrub.menu("0", "source $prefix/other.cfg\n" + PLAIN), "another file"),
        (madegrub.menu("0", 'set superusers="root"\npassword_pbkdf2 root grub.x\n' + PLAIN), "password"),
        (madegrub.menu("0", "set check_signatures=enforce\n" + PLAIN), "signed"),
        (madegrub.menu("0", PLAIN + "if [ \"x$default\" = 'a' ]; then default='b'; fi;\n"), "changes its default"),
        (madegrub.menu("0", 'set default="1"\n' + PLAIN), "more than one default"),
        (PLAIN, "sets no default"),
        (doing("if true; then savedefault; fi"), "makes itself the default"),
        (doing("savedefault; load_video"), "makes itself the default"),
        (doing("load_video; savedefault"), "makes itself the default"),
        (doing("savedefault yes"), "makes itself the default"),
        (doing('saved_entry="${chosen}"; save_env saved_entry'), "does more than start Linux: it runs 'saved_entry="),
        (doing("set saved_entry=x; save_env saved_entry"), "does more than start Linux: it runs 'save_env"),
        (doing("if [ a ]; then save_env saved_entry; fi"), "does more than start Linux: it runs 'save_env"),
        (doing("chainloader +1"), "does more than start Linux: it runs 'chainloader"),
        (doing("boot"), "does more than start Linux: it runs 'boot"),
        (doing("$something"), "does more than start Linux"),
        (doing("menuentry 'inner' {\n\techo x\n\t}"), "does more than start Linux: it runs 'menuentry"),
        (madegrub.menu("0", madegrub.entry("L", "l", f"{LINE} -- single")), "after '--'"),
        (madegrub.menu("0", "menuentry 'M' --id m {\n\tchainloader +1\n}\n"), "does more than start Linux"),
        (madegrub.menu("0", "menuentry 'M' --id m {\n\tinsmod x\n}\n"), "does not start exactly one"),
        (
            madegrub.menu("0", "menuentry 'M' --id m {\n\tif [ a ]; then linux /x; fi\n}\n"),
            "does not start exactly one",
        ),
        (madegrub.menu("0", "menuentry 'M' --id m {\n\tlinux /x\n\tlinux /y\n}\n"), "does not start exactly one"),
        (madegrub.menu("0", 'menuentry "$os" --id m {\n\tlinux /x\n}\n'), "no fixed title"),
        (madegrub.menu("0", "menuentry 'M' --id $x {\n\tlinux /x\n}\n"), "no fixed id"),
        (madegrub.menu("0", "menuentry 'M' --id m {\n\tlinux /x a\\\n b\n}\n"), "continues in the next"),
        (madegrub.menu("0", "menuentry 'M {\n\tlinux /x\n}\n"), "not closed"),
        (madegrub.menu("0", PLAIN + "}\n"), "an unexpected"),
        (madegrub.menu("0", PLAIN + "insmod {\n"), "an unexpected"),
        (madegrub.menu("0", "menuentry 'M' --id m {\n\tlinux /x &\n}\n"), "an unexpected"),
        (madegrub.menu("0", PLAIN).removesuffix("fi\n"), "within a block"),
    ],
)
def test_a_menu_that_is_not_understood_raises_its_reason(menu: str, reason: str) -> None:
    with pytest.raises(NotUnderstood, match=reason):
        default_entry(menu, "")


UBUNTU = """menuentry 'Ubuntu' --class ubuntu $menuentry_id_option 'gnulinux-simple-1' {
\trecordfail
\tload_video
\tgfxmode $linux_gfx_mode
\tinsmod gzio
\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
\tset root='hd0,gpt2'
\tif [ x$feature_platform_search_hint = xy ]; then
\t  search --no-floppy --fs-uuid --set=root --hint-bios=hd0,gpt2 0000
\telse
\t  search --no-floppy --fs-uuid --set=root 0000
\tfi
\tlinux\t/boot/vmlinuz-6.8.0 root=UUID=1 ro quiet $vt_handoff
\tinitrd\t/boot/initrd.img-6.8.0
}
"""
SUSE = """menuentry 'openSUSE' --class os $menuentry_id_option 'gnulinux-simple-1' {
\tload_video
\tset gfxpayload=keep
\tinsmod gzio
\tinsmod cryptodisk
\tcryptomount -u 0000
\tsearch --no-floppy --fs-uuid --set=root 0000
\techo\t'Loading Linux 6.4.0 ...'
\tlinux\t/boot/vmlinuz-6.4.0 root=UUID=1 splash=silent
\techo\t'Loading initial ramdisk ...'
\tinitrd\t/boot/initrd-6.4.0
}
"""


@pytest.mark.parametrize("entry", [UBUNTU, SUSE])
def test_entries_of_other_distributions_are_copied_as_they_stand(entry: str) -> None:
    found = default_entry(madegrub.menu("0", entry), "")
    assert f"{{{found.body}}}\n" == entry[entry.index("{") :]


def test_quotes_and_escapes_in_a_title() -> None:
    entries = madegrub.entry("It'\\''s \\ \"Linux\" {}", "it", LINE) + PLAIN
    assert default_entry(madegrub.menu('It\'s \\\\ \\"Linux\\" {}', entries), "").title == 'It\'s \\ "Linux" {}'
    entries = madegrub.entry("a > b", "it", LINE) + PLAIN
    assert default_entry(madegrub.menu("a >> b", entries), "").title == "a > b"


def test_the_menu_has_to_forget_the_entry_of_one_boot_and_to_read_our_file() -> None:
    whole = parse_menu(madegrub.menu())
    assert grub.takes_next_entry(whole)
    assert grub.reads_custom(whole)
    for line in ("load_env", "set next_entry=", "save_env next_entry"):
        without = madegrub.menu().replace(f"  {line}\n", "\n")
        assert not grub.takes_next_entry(parse_menu(without)), line
    assert not grub.reads_custom(parse_menu(madegrub.menu(custom="")))


NAME = st.text(
    st.characters(exclude_categories=("C", "Z"), exclude_characters="\ufffd"), min_size=1, max_size=12
).filter(lambda name: not name[0].isdigit())


@given(st.data())
def test_any_entry_of_any_menu_is_found_by_any_name(data: st.DataObject) -> None:
    """Menus with submenus; ``known``: each entry by its path of (position, id, title)."""
    names = iter(data.draw(st.lists(NAME, min_size=40, max_size=40, unique=True)))
    known: list[tuple[list[tuple[int, str, str]], str]] = []

    def level(path: list[tuple[int, str, str]], depth: int) -> str:
        text = ""
        for position in range(data.draw(st.integers(1, 3))):
            title, ident = next(names), f"id{len(known)}-{depth}-{position}"
            here = [*path, (position, ident, title)]
            quoted = title.replace("'", "'\\''")
            if depth < 2 and data.draw(st.booleans()):
                text += f"submenu '{quoted}' $menuentry_id_option '{ident}' {{\n{level(here, depth + 1)}}}\n"
            else:
                line = f"/boot/{len(known)} ro"
                text += madegrub.entry(quoted, ident, line)
                known.append((here, line))
        return text

    menu = madegrub.menu("${saved_entry}", level([], 0))
    if not known:
        return
    path, line = data.draw(st.sampled_from(known))
    ways = [data.draw(st.integers(0, 2)) for _ in path]
    saved = ">".join(str(step[way]).replace(">", ">>") for step, way in zip(path, ways, strict=True))
    if ">>>" in saved:
        return
    assert default_entry(menu, saved).arguments == tuple(line.split())


@given(st.text("ab '\"\\${}#;\n\t|&<>=>[]", max_size=80))
def test_every_menu_is_read_or_refused(text: str) -> None:
    for menu in (text, madegrub.menu("0", text + "\n" + PLAIN)):
        try:
            default_entry(menu, "")
        except NotUnderstood:
            continue


@given(st.text(max_size=40))
def test_a_quoted_word_means_the_text_in_its_quotes(text: str) -> None:
    assert literal("'" + text.replace("'", "'\\''") + "'") == text
    kept = text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    assert literal(f'"{kept}"') == text
    assert literal(f'"{kept}$x"') is None


KEY = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
VALUE = st.text(st.characters(exclude_categories=("C",), exclude_characters="\\"), min_size=1, max_size=30)


def test_a_full_block_takes_no_more() -> None:
    with pytest.raises(ValueError, match="full"):
        grub.with_variable(madegrub.block(a="x" * 980).encode(), "next_entry", "y" * 20)


@given(st.dictionaries(KEY, VALUE, max_size=6), VALUE)
def test_one_variable_changes_and_the_block_keeps_its_size(kept: dict[str, str], value: str) -> None:
    kept.pop("next_entry", None)
    block = b"# GRUB Environment Block\n".ljust(1024, b"#")
    for name, one in kept.items():
        block = grub.with_variable(block, name, one)
    changed = grub.with_variable(block, "next_entry", value)
    assert len(changed) == 1024
    assert grub.environment_variables(changed) == {**kept, "next_entry": value}
    assert grub.with_variable(changed, "next_entry", "") == block


@pytest.mark.parametrize(
    "block",
    [b"", b"#" * 1024, b"# GRUB Environment Block\nx=1", b"# GRUB Environment Block\nx=a\\\\b\n".ljust(1024, b"#")],
)
def test_an_invalid_grub_environment_block_is_refused(block: bytes) -> None:
    with pytest.raises(ValueError, match=r"not an environment|an escaped"):
        grub.with_variable(block, "next_entry", "x")
