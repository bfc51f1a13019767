# shellcheck shell=sh
# The environment that all scripts share: .venv at the root, filled from requirements/*.txt.
#
# Sourced by the scripts, which set ROOT first. What is installed is remembered in a stamp beside it, so that a second
# run starts at once and a changed pin or pyproject.toml installs anew.

VENV="$ROOT/.venv"

say() {
    printf '%s\n' "$*" >&2
}

# die LINE...: says the lines and ends.
die() {
    printf '%s\n' "$@" >&2
    exit 2
}

# Sets PYTHON to the first interpreter that is new enough and can make an environment; else says which of the two is missing.
need_python() {
    seen='' bare=''
    for candidate in ${LUTHIER_PYTHON:-python3 python3.11 python3.12 python3.13 python3.14 python}; do
        command -v "$candidate" >/dev/null 2>&1 || continue
        version=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
        case $version in
        3.1[1-9] | 3.[2-9][0-9]) ;;
        *)
            seen="$seen $candidate is $version;"
            continue
            ;;
        esac
        if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            PYTHON=$candidate
            return 0
        fi
        bare=${bare:-$version}
    done
    if [ -n "$bare" ]; then
        die "Python $bare is here, but not the parts that make an environment (venv, ensurepip)." \
            "On Debian or Ubuntu: apt-get install python$bare-venv"
    fi
    die "Luthier needs Python 3.11 or newer.${seen:+ Found:$seen}" \
        "On Debian 12 or newer: apt-get install python3 python3-venv. To use another one, set LUTHIER_PYTHON to its path."
}

need_git() {
    command -v git >/dev/null 2>&1 || die "git is missing. On Debian or Ubuntu: apt-get install git"
}

# What an installation depends on, as one line.
stamp_of() {
    (
        cd "$ROOT" || exit
        cat "requirements/$1.txt" requirements/build.txt pyproject.toml src/luthier/_version.py
        "$VENV/bin/python" -c 'import sys; print(sys.version)'
    ) | cksum
}

is_current() {
    [ -f "$VENV/installed-$1" ] && [ "$(cat "$VENV/installed-$1")" = "$(stamp_of "$1")" ]
}

# The commands in an environment name its path, so one that was moved along with its clone is made anew.
is_usable() {
    [ -f "$VENV/place" ] && [ "$(cat "$VENV/place")" = "$VENV" ] &&
        "$VENV/bin/python" -m pip --version >/dev/null 2>&1
}

install() {
    "$VENV/bin/python" -m pip --disable-pip-version-check --no-input install --quiet "$@"
}

# need_venv NAME: makes .venv if needed, and installs requirements/NAME.txt and the package into it.
need_venv() {
    if is_usable; then
        # The tests' environment holds all that the demo's does.
        if is_current "$1" || { [ "$1" = demo ] && is_current test; }; then
            return 0
        fi
    else
        need_python
        say "Making .venv with $("$PYTHON" --version) ..."
        rm -rf "$VENV"
        "$PYTHON" -m venv "$VENV" || die "Could not make $VENV; the lines above say why."
        printf '%s\n' "$VENV" >"$VENV/place"
    fi
    say "Installing requirements/$1.txt into .venv (once; about a minute) ..."
    rm -f "$VENV/installed-$1"
    if install -r "$ROOT/requirements/$1.txt" -r "$ROOT/requirements/build.txt" &&
        install --no-deps --no-build-isolation --editable "$ROOT"; then
        stamp_of "$1" >"$VENV/installed-$1"
    else
        die "Installing failed; the lines above say why. The first time, a network is needed."
    fi
}
