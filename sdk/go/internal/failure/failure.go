// Package failure makes the errors of the service's operations.
package failure

import (
	"blockbase"
	"blockbase/internal/bindings/imports/blockbase_block_types"
	"blockbase/internal/wire"
)

// Of is the error that the service gave.
func Of(given blockbase_block_types.Error) error {
	failure := &blockbase.Error{Code: given.Code, Message: given.Message}
	if given.Details.IsSome() {
		if err := wire.Decode(given.Details.Some(), &failure.Details); err != nil {
			failure.Details = given.Details.Some()
		}
	}
	return failure
}
