#!/bin/sh
# Lays the program below a package's root folder. The Debian package and the RPM both call it, so they have the same files.
#
#   sh assets/packaging/install.sh WHEELS ROOT ZSH      from the top of the source; writes only below ROOT
#
# WHEELS: a folder with wheels of what the program needs, and of what its build needs. ZSH: the distribution's folder of
# zsh's completions. It needs Python with pip and headers, a C compiler, and no network.
#
# The program and the packages that it needs have a folder of their own, because distributions have other versions: of
# Textual and Rich, Debian 12 has 0.1 and 13.3, Debian 13 has 2.1 and 13.9, and neither has plotext or HdrHistogram. The
# folder belongs to root, as that of a class host does: root's agent starts from it.
set -eu
wheels=$1 root=$2 zsh=$3
lib=/usr/lib/jitter-workshop
python=/usr/bin/python3
# A program that is called may write into its home folder.
HOME=$(mktemp -d)
trap 'rm -rf "$HOME"' EXIT
export HOME PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8

"$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check --no-compile --no-index \
    --find-links "$wheels" --target "$root$lib" .
# Programs of other packages; what pip notes of this build; setuptools, which the running program never imports.
rm -rf "$root$lib/bin" "$root$lib/pbr/tests" "$root$lib/setuptools" "$root$lib/_distutils_hack" "$root$lib/pkg_resources" \
    "$root$lib"/setuptools-*.dist-info "$root$lib/distutils-precedence.pth"
find "$root$lib" \( -name direct_url.json -o -name REQUESTED -o -name INSTALLER -o -name __pycache__ \) -prune -exec rm -rf {} +
find "$root$lib/jitter_workshop" -name '*.sh' -exec grep -q '^#!/' {} \; -exec chmod 755 {} +

program() { PYTHONPATH=$root$lib "$python" -m jitter_workshop "$@"; }
put() { # put FOLDER NAME MODE: a file from standard input
    mkdir -p "$root$1"
    cat >"$root$1/$2"
    chmod "$3" "$root$1/$2"
}
PYTHONPATH=$root$lib "$python" -c \
    "from jitter_workshop.classroom.install import launcher_text; print(launcher_text('$lib', '$python'), end='')" |
    put /usr/bin jitter-workshop 755
program man | put /usr/share/man/man1 jitter-workshop.1 644
program completions bash | put /usr/share/bash-completion/completions jitter-workshop 644
program completions zsh | put "$zsh" _jitter-workshop 644
program completions fish | put /usr/share/fish/vendor_completions.d jitter-workshop.fish 644
