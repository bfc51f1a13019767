# shellcheck shell=sh
# bubblewrap, in which servers are locked up. Where it is missing and cannot be installed, the tests that need it are skipped.
#
# Sourced after venv.sh.

sandbox() {
    if ! command -v bwrap >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "Installing bubblewrap (once) ..."
        { apt-get install -y -qq bubblewrap || { apt-get update -qq && apt-get install -y -qq bubblewrap; }; } >/dev/null 2>&1 ||
            say "apt-get could not install bubblewrap."
    fi
    command -v bwrap >/dev/null 2>&1 ||
        say "bubblewrap is missing: the tests of the sandbox are skipped. On Debian or Ubuntu: apt-get install bubblewrap"
}
