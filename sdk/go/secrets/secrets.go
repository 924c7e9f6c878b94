// Package secrets is what `permissions.secrets` of block.json names.
package secrets

import (
	"blockbase/internal/bindings/imports/blockbase_block_secrets"
	"blockbase/internal/failure"
	"blockbase/internal/wire"
)

// Get is the value of a secret.
func Get(name string) (string, error) {
	return wire.Answer(blockbase_block_secrets.Get(name), failure.Of)
}
