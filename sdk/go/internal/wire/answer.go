package wire

import "blockbase/internal/wit/types"

// Answer is a result of the service's whose error is made by `fail`.
func Answer[T, E any](result wit_types.Result[T, E], fail func(E) error) (T, error) {
	if result.IsErr() {
		var none T
		return none, fail(result.Err())
	}
	return result.Ok(), nil
}
