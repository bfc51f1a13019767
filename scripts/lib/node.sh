# shellcheck shell=sh
# The MCP servers written for Node that some tests speak to, in .tools/node. Without Node those tests are skipped.
#
# Sourced after venv.sh. Exports LUTHIER_NODE_SERVERS, the folder whose node_modules/.bin holds the servers.

NODE_SERVERS="$ROOT/.tools/node"
NODE_PACKAGES="
@modelcontextprotocol/server-everything@2026.8.31
@modelcontextprotocol/server-filesystem@2026.8.31
@modelcontextprotocol/server-memory@2026.8.31
"

node_servers() {
    if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
        say "Node or npm is missing: the tests against Node servers are skipped. On Debian or Ubuntu: apt-get install nodejs npm"
        unset LUTHIER_NODE_SERVERS
        return 0
    fi
    wanted="$NODE_PACKAGES$(node --version)"
    if [ ! -f "$NODE_SERVERS/installed" ] || [ "$(cat "$NODE_SERVERS/installed")" != "$wanted" ]; then
        say "Installing the Node servers for the tests into .tools/node (once) ..."
        rm -rf "$NODE_SERVERS"
        mkdir -p "$NODE_SERVERS"
        # shellcheck disable=SC2086  # one word per package
        npm install --prefix "$NODE_SERVERS" --no-package-lock --no-audit --no-fund --no-update-notifier --loglevel=error $NODE_PACKAGES >&2 ||
            die "npm could not install the test servers; the lines above say why."
        printf '%s' "$wanted" >"$NODE_SERVERS/installed"
    fi
    export LUTHIER_NODE_SERVERS="$NODE_SERVERS"
}
