#!/usr/bin/env bash
# The first five minutes with Holdfast, in five commands: what `make demo` runs.
# Takes `holdfast` and `python` from the PATH, and leaves nothing behind.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python -m holdfast.sample .

say() { printf '\n# %s\n' "$@"; }

# Shows a command as one would type it, then runs it.
run() {
    printf '$ %s\n' "$1"
    eval "$1"
}

say 'Four tables of a small shop, as CSV files. This is how orders.csv begins:'
head -n 4 orders.csv
say 'Which columns tell the rows of each table apart?'
run 'holdfast profile customers.csv products.csv orders.csv order_items.csv --into shop/'
say 'So a customer orders at most once a day. Tuesday brings 21 more orders.'
run 'holdfast apply shop/ --table orders --inserts tuesday/orders-inserts.csv --batch-id tuesday'
say 'Order 353 was put on the wrong day. Wednesday corrects it, and the key holds again.'
run 'holdfast apply shop/ --table orders --updates wednesday/orders-updates.csv \
    --row-key order_id --batch-id wednesday'
say 'What is known now, what matters first: what a row is, its keys, its parents.'
run 'holdfast show shop/ --table orders'
say 'And how it came to be.'
run 'holdfast history shop/'
