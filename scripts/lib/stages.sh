# shellcheck shell=sh
# Stages of a check: each one runs, whatever came before it, and the end says which failed.

failed=''

# stage NAME COMMAND...
stage() {
    stage_name=$1
    shift
    printf '\n== %s\n' "$stage_name"
    "$@" || {
        printf '== %s failed (exit status %s)\n' "$stage_name" "$?"
        failed="$failed${failed:+, }$stage_name"
    }
}

lint_and_types() {
    stage 'ruff check' "$VENV/bin/ruff" check .
    stage 'ruff format' "$VENV/bin/ruff" format --check .
    stage 'mypy' "$VENV/bin/mypy"
}

# Ends the script: 0 if every stage passed.
finish() {
    if [ -n "$failed" ]; then
        printf '\nFailed: %s\n' "$failed"
        exit 1
    fi
    printf '\nAll passed.\n'
}
