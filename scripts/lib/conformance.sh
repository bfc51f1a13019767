# shellcheck shell=sh
# The official conformance suite and MCP Inspector, in .tools/conformance, with the Node that they need beside them.
#
# Sourced after venv.sh. Sets CONFORMANCE and INSPECTOR, their commands, and puts their Node first on PATH.

CONFORMANCE_HOME="$ROOT/.tools/conformance"
CONFORMANCE_PACKAGES='@modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/inspector@2.12.0 node@22.23.3'

conformance_suite() {
    command -v npm >/dev/null 2>&1 || die "npm is missing. On Debian or Ubuntu: apt-get install npm"
    if [ ! -f "$CONFORMANCE_HOME/installed" ] || [ "$(cat "$CONFORMANCE_HOME/installed")" != "$CONFORMANCE_PACKAGES" ]; then
        say "Installing the conformance suite into .tools/conformance (once) ..."
        rm -rf "$CONFORMANCE_HOME"
        mkdir -p "$CONFORMANCE_HOME"
        # shellcheck disable=SC2086  # one word per package
        npm install --prefix "$CONFORMANCE_HOME" --no-package-lock --no-audit --no-fund --no-update-notifier --loglevel=error $CONFORMANCE_PACKAGES >&2 ||
            die "npm could not install the conformance suite; the lines above say why."
        printf '%s' "$CONFORMANCE_PACKAGES" >"$CONFORMANCE_HOME/installed"
    fi
    PATH="$CONFORMANCE_HOME/node_modules/node/bin:$PATH"
    export PATH
    CONFORMANCE="$CONFORMANCE_HOME/node_modules/.bin/conformance"
    # shellcheck disable=SC2034  # read by whoever sources this
    INSPECTOR="$CONFORMANCE_HOME/node_modules/.bin/mcp-inspector"
}
