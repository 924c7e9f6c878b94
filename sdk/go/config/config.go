// Package config is the block's configuration.
package config

import (
	"blockbase/internal/bindings/imports/blockbase_block_config"
	"blockbase/internal/wire"
)

// Get reads the configuration, checked against the manifest's schema, defaults filled in.
func Get[T any]() (T, error) {
	var config T
	err := wire.Decode(blockbase_block_config.Get(), &config)
	return config, err
}
