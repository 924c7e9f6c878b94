#!/usr/bin/env bash
# Makes bindings/ anew from wit/. Needs cargo: the generator is installed into a folder of its own that is thrown away.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/wit/deps"
cp -r ../../wit/* "$work/wit/deps/"
cat > "$work/wit/block.wit" <<'WIT'
package blockbase:guest;

world block {
  import blockbase:block/data@0.1.0;
  import blockbase:block/secrets@0.1.0;
  import blockbase:block/config@0.1.0;
  import blockbase:block/log@0.1.0;
  import blockbase:block/deadline@0.1.0;
  import blockbase:block/http@0.1.0;

  export blockbase:block/registry@0.1.0;
  export blockbase:block/actions@0.1.0;
  export blockbase:block/hooks@0.1.0;
  export blockbase:block/subscriptions@0.1.0;
  export blockbase:sdk/describe@0.1.0;
}
WIT

if [ -z "${WIT_BINDGEN:-}" ]; then
  cargo install wit-bindgen-cli --version 0.63.0 --locked --debug --no-default-features --features c --root "$work" --target-dir "$work/target"
  WIT_BINDGEN="$work/bin/wit-bindgen"
fi
"$WIT_BINDGEN" c --no-object-file --no-sig-flattening --out-dir bindings "$work/wit"
