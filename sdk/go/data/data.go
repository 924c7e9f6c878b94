// Package data reads and writes records. Every call is checked against `permissions.data` of block.json.
//
// Values are anything that encoding/json writes: structs, or M. Records are read into the type that is asked for.
package data

import (
	"encoding/json"

	"blockbase/internal/bindings/imports/blockbase_block_data"
	"blockbase/internal/failure"
	"blockbase/internal/wire"
	"blockbase/internal/wit/types"
)

// M is a JSON object written in place.
type M = map[string]any

// Page is a page of records.
type Page[T any] struct {
	Data       []T        `json:"data"`
	Pagination Pagination `json:"pagination"`
}

// Pagination is where a page lies in the list.
type Pagination struct {
	Page     int `json:"page"`
	PageSize int `json:"pageSize"`
	// TotalCount and TotalPages are nil where the query said `"count": "none"`.
	TotalCount      *int `json:"totalCount"`
	TotalPages      *int `json:"totalPages"`
	HasNextPage     bool `json:"hasNextPage"`
	HasPreviousPage bool `json:"hasPreviousPage"`
	// StartCursor and EndCursor are nil unless the query said `after` or `before`. Page and TotalPages are empty then.
	StartCursor *string `json:"startCursor"`
	EndCursor   *string `json:"endCursor"`
}

// Upserted is what an upsert did.
type Upserted[T any] struct {
	// Created tells whether the record is new.
	Created bool `json:"created"`
	Data    T    `json:"data"`
}

// Aggregated is what an aggregate found.
type Aggregated struct {
	// Value is null where no record matches.
	Value         json.RawMessage `json:"value"`
	FilteredCount int             `json:"filteredCount"`
}

func decoded[T any](text string, err error) (T, error) {
	var value T
	if err != nil {
		return value, err
	}
	err = wire.Decode(text, &value)
	return value, err
}

// Query lists records: `{ search?, filters?: [{ field, operator?, value? }], where?, sort?, page?, pageSize?, limit?, offset?,
// after?, before?, select?, expand?, count? }`. `where` is a condition, with and, or, not and relations. `after` and `before` are
// cursors, instead of `page` and `offset`; `"after": ""` reads the first page.
func Query[T any](object string, query any) (Page[T], error) {
	if query == nil {
		query = M{}
	}
	text, err := wire.Encode(query)
	if err != nil {
		return Page[T]{}, err
	}
	return decoded[Page[T]](wire.Answer(blockbase_block_data.Query(object, text), failure.Of))
}

// Get is one record, or nil where there is none that the block may see.
func Get[T any](object, id string) (*T, error) {
	return get[T](object, id, wit_types.None[string]())
}

// GetExpanded is one record with its related records: `expand` names relation keys, comma-separated.
func GetExpanded[T any](object, id, expand string) (*T, error) {
	text, err := wire.Encode(M{"expand": expand})
	if err != nil {
		return nil, err
	}
	return get[T](object, id, wit_types.Some(text))
}

func get[T any](object, id string, options wit_types.Option[string]) (*T, error) {
	found, err := wire.Answer(blockbase_block_data.Get(object, id, options), failure.Of)
	if err != nil || found.IsNone() {
		return nil, err
	}
	record, err := decoded[T](found.Some(), nil)
	return &record, err
}

// Aggregate counts, sums and the like: `{ fn: "count" | "sum" | "avg" | "min" | "max", field?, search?, filters?, where? }`.
func Aggregate(object string, query any) (Aggregated, error) {
	text, err := wire.Encode(query)
	if err != nil {
		return Aggregated{}, err
	}
	return decoded[Aggregated](wire.Answer(blockbase_block_data.Aggregate(object, text), failure.Of))
}

// Create makes a record and answers with it.
func Create[T any](object string, values any) (T, error) {
	text, err := wire.Encode(values)
	if err != nil {
		var none T
		return none, err
	}
	return decoded[T](wire.Answer(blockbase_block_data.Create(object, text), failure.Of))
}

// CreateMany makes several records, all or none, and answers with their ids in order.
func CreateMany(object string, values any) ([]string, error) {
	text, err := wire.Encode(values)
	if err != nil {
		return nil, err
	}
	type created struct {
		IDs []string `json:"ids"`
	}
	made, err := decoded[created](wire.Answer(blockbase_block_data.CreateMany(object, text), failure.Of))
	return made.IDs, err
}

// Update changes a record and answers with it. A numeric field takes `{ "$inc": n }` and `{ "$dec": n }`.
func Update[T any](object, id string, changes any) (T, error) {
	text, err := wire.Encode(changes)
	if err != nil {
		var none T
		return none, err
	}
	return decoded[T](wire.Answer(blockbase_block_data.Update(object, id, text), failure.Of))
}

// Upsert makes a record, or updates the one with the same values of the unique target `onConflict`.
func Upsert[T any](object string, values any, onConflict ...string) (Upserted[T], error) {
	text, err := wire.Encode(values)
	if err != nil {
		return Upserted[T]{}, err
	}
	return decoded[Upserted[T]](wire.Answer(blockbase_block_data.Upsert(object, text, onConflict), failure.Of))
}

// Delete tells whether there was a record to delete.
func Delete(object, id string) (bool, error) {
	return wire.Answer(blockbase_block_data.Delete(object, id), failure.Of)
}

// DeleteMany answers with the ids of those that were deleted.
func DeleteMany(object string, ids []string) ([]string, error) {
	return wire.Answer(blockbase_block_data.DeleteMany(object, ids), failure.Of)
}

// Link links a record with others by a many_to_many relation key, and tells how many links are new.
func Link(object, id, relation string, ids []string) (int, error) {
	count, err := wire.Answer(blockbase_block_data.Link(object, id, relation, ids), failure.Of)
	return int(count), err
}

// Unlink removes links, and tells how many there were.
func Unlink(object, id, relation string, ids []string) (int, error) {
	count, err := wire.Answer(blockbase_block_data.Unlink(object, id, relation, ids), failure.Of)
	return int(count), err
}

// Batch makes several writes, all or none, and answers with their results in order: a record, `{ created, data }` of an upsert, the
// number of links, true for a deleted record, null for a missing one. An operation is `{ op: "create" | "update" | "upsert" | "delete" |
// "link" | "unlink", object, id?, values?, onConflict?, relation?, ids? }`; `{ "$ref": "0.id" }` is a field of an earlier result.
func Batch(operations any) ([]json.RawMessage, error) {
	text, err := wire.Encode(operations)
	if err != nil {
		return nil, err
	}
	return decoded[[]json.RawMessage](wire.Answer(blockbase_block_data.Batch(text), failure.Of))
}
