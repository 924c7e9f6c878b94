// Package export_blockbase_block_actions runs actions.
package export_blockbase_block_actions

import (
	"blockbase/internal/bindings/imports/blockbase_block_types"
	"blockbase/internal/dispatch"
	"blockbase/internal/wit/types"
)

func Call(context blockbase_block_types.Context, name string, input string) wit_types.Result[string, blockbase_block_types.Error] {
	output, failure := dispatch.Action(context, name, input)
	if failure != nil {
		return wit_types.Err[string, blockbase_block_types.Error](*failure)
	}
	return wit_types.Ok[string, blockbase_block_types.Error](output)
}
