#!/usr/bin/env bash
# The first five minutes with Holdfast, in five commands: what `make demo` runs.
# Takes `holdfast` and `python` from the PATH, and leaves nothing behind.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python -m holdfast.sample .

# Shows a command as one would type it, then runs it.
run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

run holdfast profile customers.csv products.csv orders.csv order_items.csv --into shop/
printf '\n# Tuesday: a customer orders twice in one day.\n'
run holdfast apply shop/ --table orders --inserts tuesday/orders-inserts.csv --batch-id tuesday
printf '\n# Wednesday: the second order is corrected.\n'
run holdfast apply shop/ --table orders --updates wednesday/orders-updates.csv \
    --row-key order_id --batch-id wednesday
run holdfast show shop/ keys
run holdfast history shop/
