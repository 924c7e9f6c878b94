// Package export_blockbase_block_registry names the block's handlers.
package export_blockbase_block_registry

import (
	"blockbase/internal/bindings/imports/blockbase_block_registry"
	"blockbase/internal/dispatch"
)

func Handlers() []blockbase_block_registry.Handler {
	return dispatch.Handlers()
}
