// Package http sends requests to what `permissions.http` of block.json names.
package http

import (
	"time"

	"blockbase"
	bindings "blockbase/internal/bindings/imports/blockbase_block_http"
	"blockbase/internal/failure"
	"blockbase/internal/wire"
	"blockbase/internal/wit/types"
)

// Request is an outgoing request.
type Request struct {
	// Method is GET where it is empty.
	Method string
	URL    string
	Header blockbase.Header
	// Body is nil for none.
	Body []byte
	// Timeout is what is left of the call where it is 0.
	Timeout time.Duration
}

// Send sends a request and waits for the whole response. Whatever status that has, it is no error.
func Send(request Request) (*blockbase.Response, error) {
	sent := bindings.Request{Method: request.Method, Url: request.URL, Body: wit_types.None[[]uint8](), TimeoutMs: wit_types.None[uint32]()}
	if sent.Method == "" {
		sent.Method = "GET"
	}
	for _, field := range request.Header {
		sent.Headers = append(sent.Headers, wit_types.Tuple2[string, []uint8]{F0: field.Name, F1: []byte(field.Value)})
	}
	if request.Body != nil {
		sent.Body = wit_types.Some(request.Body)
	}
	if request.Timeout > 0 {
		sent.TimeoutMs = wit_types.Some(uint32(min(request.Timeout.Milliseconds(), 1<<32-1)))
	}
	received, err := wire.Answer(bindings.Send(sent), failure.Of)
	if err != nil {
		return nil, err
	}
	response := &blockbase.Response{Status: int(received.Status), Body: received.Body}
	for _, field := range received.Headers {
		response.Header = append(response.Header, blockbase.Field{Name: field.F0, Value: string(field.F1)})
	}
	return response, nil
}
