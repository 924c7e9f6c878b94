// Package export_blockbase_block_subscriptions delivers events.
package export_blockbase_block_subscriptions

import (
	"blockbase/internal/bindings/imports/blockbase_block_subscriptions"
	"blockbase/internal/bindings/imports/blockbase_block_types"
	"blockbase/internal/dispatch"
	"blockbase/internal/wit/types"
)

func Deliver(context blockbase_block_types.Context, name string, event blockbase_block_subscriptions.Event, config string) wit_types.Result[wit_types.Unit, blockbase_block_types.Error] {
	if failure := dispatch.Event(context, name, event, config); failure != nil {
		return wit_types.Err[wit_types.Unit, blockbase_block_types.Error](*failure)
	}
	return wit_types.Ok[wit_types.Unit, blockbase_block_types.Error](wit_types.Unit{})
}
