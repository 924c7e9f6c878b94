// Package export_blockbase_sdk_describe says what the block's code declares.
package export_blockbase_sdk_describe

import "blockbase/internal/dispatch"

func Manifest() string {
	return dispatch.Manifest()
}
