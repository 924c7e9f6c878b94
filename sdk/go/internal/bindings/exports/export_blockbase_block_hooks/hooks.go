// Package export_blockbase_block_hooks runs hooks.
package export_blockbase_block_hooks

import (
	"blockbase/internal/bindings/imports/blockbase_block_hooks"
	"blockbase/internal/bindings/imports/blockbase_block_types"
	"blockbase/internal/dispatch"
	"blockbase/internal/wit/types"
)

type answer = wit_types.Option[blockbase_block_hooks.Response]

func Receive(context blockbase_block_types.Context, name string, request blockbase_block_hooks.Request) wit_types.Result[answer, blockbase_block_types.Error] {
	response, failure := dispatch.Hook(context, name, request)
	if failure != nil {
		return wit_types.Err[answer, blockbase_block_types.Error](*failure)
	}
	if response == nil {
		return wit_types.Ok[answer, blockbase_block_types.Error](wit_types.None[blockbase_block_hooks.Response]())
	}
	return wit_types.Ok[answer, blockbase_block_types.Error](wit_types.Some(*response))
}
