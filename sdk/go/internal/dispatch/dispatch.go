// Package dispatch is where the service's calls and the registered handlers meet: the exported functions call what is put in
// here. It stands between the two so that neither has to import the other.
package dispatch

import (
	"blockbase/internal/bindings/imports/blockbase_block_hooks"
	"blockbase/internal/bindings/imports/blockbase_block_registry"
	"blockbase/internal/bindings/imports/blockbase_block_subscriptions"
	"blockbase/internal/bindings/imports/blockbase_block_types"
)

var (
	Handlers func() []blockbase_block_registry.Handler
	Action   func(context blockbase_block_types.Context, name, input string) (string, *blockbase_block_types.Error)
	Hook     func(context blockbase_block_types.Context, name string, request blockbase_block_hooks.Request) (*blockbase_block_hooks.Response, *blockbase_block_types.Error)
	Event    func(context blockbase_block_types.Context, name string, event blockbase_block_subscriptions.Event, config string) *blockbase_block_types.Error
	Manifest func() string
)
