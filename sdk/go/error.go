package blockbase

import (
	"errors"
	"fmt"

	"blockbase/internal/bindings/imports/blockbase_block_types"
	"blockbase/internal/wire"
	"blockbase/internal/wit/types"
)

// Error is a failure with a code: of a handler, or of the service's own operations.
//
// The codes not_found, invalid_request, forbidden, conflict and unavailable become the status of their name; every other code
// is a failed action. An error of another type becomes one with the code action_failed and the error's message.
type Error struct {
	Code    string
	Message string
	// Details is anything that encoding/json writes; nil for none. In an error of the service's it is what the JSON says.
	Details any
}

func (e Error) Error() string {
	return e.Code + ": " + e.Message
}

// NotFound is 404: there is no such thing.
func NotFound(format string, arguments ...any) error {
	return &Error{Code: "not_found", Message: fmt.Sprintf(format, arguments...)}
}

// InvalidRequest is 400: the caller has to change something.
func InvalidRequest(format string, arguments ...any) error {
	return &Error{Code: "invalid_request", Message: fmt.Sprintf(format, arguments...)}
}

// Forbidden is 403: this caller may not.
func Forbidden(format string, arguments ...any) error {
	return &Error{Code: "forbidden", Message: fmt.Sprintf(format, arguments...)}
}

// Conflict is 409: it does not fit what is there.
func Conflict(format string, arguments ...any) error {
	return &Error{Code: "conflict", Message: fmt.Sprintf(format, arguments...)}
}

// Unavailable is 503: it may work later.
func Unavailable(format string, arguments ...any) error {
	return &Error{Code: "unavailable", Message: fmt.Sprintf(format, arguments...)}
}

// CodeOf is the code of an error that is or wraps an Error; else the empty string.
func CodeOf(err error) string {
	if failure := find(err); failure != nil {
		return failure.Code
	}
	return ""
}

func find(err error) *Error {
	var pointer *Error
	if errors.As(err, &pointer) && pointer != nil {
		return pointer
	}
	var value Error
	if errors.As(err, &value) {
		return &value
	}
	return nil
}

func hostError(err error) *blockbase_block_types.Error {
	failure := find(err)
	if failure == nil {
		failure = &Error{Code: "action_failed", Message: err.Error()}
	}
	details := wit_types.None[string]()
	if failure.Details != nil {
		if text, err := wire.Encode(failure.Details); err == nil {
			details = wit_types.Some(text)
		}
	}
	return &blockbase_block_types.Error{Code: valid(failure.Code), Message: valid(failure.Message), Details: details}
}
