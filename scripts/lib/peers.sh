# shellcheck shell=sh
# Servers that some tests speak to and that cannot live in the project's own environment, each in one under .tools.
#
# Sourced after venv.sh. Exports LUTHIER_FASTMCP and LUTHIER_MCP_PROXY, the folders of the two environments.

# peer_venv NAME REQUIREMENT...
peer_venv() {
    peer_home="$ROOT/.tools/$1"
    shift
    if [ ! -f "$peer_home/installed" ] || [ "$(cat "$peer_home/installed")" != "$*" ]; then
        say "Installing $* into $peer_home (once) ..."
        rm -rf "$peer_home"
        "$VENV/bin/python" -m venv "$peer_home" || die "Could not make $peer_home; the lines above say why."
        "$peer_home/bin/python" -m pip --disable-pip-version-check --no-input install --quiet "$@" ||
            die "pip could not install $*; the lines above say why."
        printf '%s' "$*" >"$peer_home/installed"
    fi
}

peer_servers() {
    peer_venv fastmcp fastmcp==4.1.6 mcp==2.3.0
    export LUTHIER_FASTMCP="$peer_home"
    peer_venv mcp-proxy mcp-proxy==0.13.0 mcp==1.30.0 mcp-server-time==2026.10.10
    export LUTHIER_MCP_PROXY="$peer_home"
}
