#!/usr/bin/env bash
# Makes internal/bindings and internal/wit anew from wit/. Needs cargo and gofmt: the generator is installed into a folder of its own
# that is thrown away.
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
  cargo install wit-bindgen-cli --version 0.63.0 --locked --debug --no-default-features --features go --root "$work" --target-dir "$work/target"
  WIT_BINDGEN="$work/bin/wit-bindgen"
fi
rm -rf internal/bindings/imports internal/bindings/exports/wit_exports internal/wit
"$WIT_BINDGEN" go --pkg-name blockbase/internal/bindings --out-dir internal/bindings "$work/wit"

# The generated code stands on support sources that the generator's crate carries; of those, what synchronous code needs.
support=$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/wit-bindgen-go-0.63.0/src/pkg)
mkdir -p internal/wit/types internal/wit/runtime
cp "$support/LICENSE" internal/wit/
cp "$support"/wit/types/{option,result,tuple,unit}.go internal/wit/types/
cp "$support"/wit/runtime/{runtime.go,empty.s} internal/wit/runtime/
patch --strip 1 < runtime.patch
grep -rl 'go.bytecodealliance.org/pkg/wit' internal --include='*.go' | xargs sed -i 's#go.bytecodealliance.org/pkg/wit#blockbase/internal/wit#'
gofmt -w internal
