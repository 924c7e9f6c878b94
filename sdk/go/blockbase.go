// Package blockbase is what a block written in Go imports. A block registers its handlers while its package is initialised:
//
//	func init() {
//		blockbase.Action("greet", blockbase.ActionOptions{Description: "Greets somebody."}, greet)
//	}
//
//	func main() {}
//
// Each call gets an instance of its own, so variables do not keep their values for the next call. But if the manifest asks for
// `instances.reuse`, an instance serves several calls, and variables can have values of earlier ones.
package blockbase

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	_ "blockbase/internal/bindings/exports/wit_exports"
	"blockbase/internal/bindings/imports/blockbase_block_deadline"
	"blockbase/internal/bindings/imports/blockbase_block_hooks"
	"blockbase/internal/bindings/imports/blockbase_block_registry"
	"blockbase/internal/bindings/imports/blockbase_block_subscriptions"
	"blockbase/internal/bindings/imports/blockbase_block_types"
	"blockbase/internal/dispatch"
	"blockbase/internal/wire"
	"blockbase/internal/wit/types"
)

// Context is what is true of one call. As a context.Context it ends at the call's deadline.
type Context struct {
	context.Context
	CallID string
	// Block is the name under which the block is installed.
	Block string
	// Actor is who made the call; nil for the system and for anonymous callers.
	Actor *Actor
}

// Actor is who made a call.
type Actor struct {
	// UserID and APIKeyID are empty where there is none.
	UserID   string
	APIKeyID string
	Via      string
}

// Remaining is the time until the call is stopped.
func (*Context) Remaining() time.Duration {
	return time.Duration(blockbase_block_deadline.RemainingMs()) * time.Millisecond
}

// Cancelled tells whether the caller has hung up or the call's time is over.
func (*Context) Cancelled() bool {
	return blockbase_block_deadline.IsCancelled()
}

// ActionOptions describe an action. What block.json says of it stands.
type ActionOptions struct {
	Description string
	// Input is the JSON Schema of the input, of type object, as anything that encoding/json writes. Nil for the schema of the
	// handler's input type.
	Input any
	// Resource and Permission name the permission that a call needs ("orders:quotes", "read"); both empty for update on blocks.
	Resource   string
	Permission string
	// Timeout of a call; 0 for the service's own.
	Timeout time.Duration
}

// HookOptions describe a hook.
type HookOptions struct {
	Description string
}

// SubscriptionOptions describe a handler of events.
type SubscriptionOptions struct {
	// Event is the pattern of the topics: `*` stands for one part, `#` for any number.
	Event string
	// Consumer is the name of the group that shares the deliveries; it begins with the block's name and a colon.
	Consumer string
	// Config is given to the handler with each event.
	Config map[string]any
	// PerInstance delivers to every instance of the service rather than to one.
	PerInstance bool
}

// Event is something that happened. It may come twice.
type Event[Payload any] struct {
	ID         string
	Topic      string
	Payload    Payload
	OccurredAt time.Time
	Attempt    int
	// Config is the subscription's.
	Config json.RawMessage
}

// Change is the payload of the events of records, `data.<object>.…`.
type Change[Record any] struct {
	Object string `json:"object"`
	ID     string `json:"id"`
	Op     string `json:"op"`
	// Before is nil where the record is new, After where it is gone.
	Before *Record `json:"before"`
	After  *Record `json:"after"`
}

// Request is an HTTP request to a hook.
type Request struct {
	Method        string
	Path          string
	Query         string
	Header        Header
	Body          []byte
	RemoteAddress string
}

// Response is an HTTP response.
type Response struct {
	Status int
	Header Header
	Body   []byte
}

// Header is the fields of an HTTP header in their order.
type Header []Field

// Field is one field of a header.
type Field struct {
	Name  string
	Value string
}

// Get is the value of the first field of a name, whatever its case; empty where there is none.
func (h Header) Get(name string) string {
	for _, field := range h {
		if strings.EqualFold(field.Name, name) {
			return field.Value
		}
	}
	return ""
}

// JSON is a response whose body is JSON.
func JSON(status int, body any) (*Response, error) {
	text, err := wire.Encode(body)
	if err != nil {
		return nil, err
	}
	return &Response{Status: status, Header: Header{{"content-type", "application/json"}}, Body: []byte(text)}, nil
}

// Text is a response of plain text.
func Text(status int, body string) *Response {
	return &Response{Status: status, Header: Header{{"content-type", "text/plain; charset=utf-8"}}, Body: []byte(body)}
}

type handler struct {
	kind, name string
	manifest   map[string]any
	action     func(*Context, string) (string, error)
	hook       func(*Context, *Request) (*Response, error)
	event      func(*Context, blockbase_block_subscriptions.Event, string) error
}

var handlers []handler

func register(new handler) {
	if lookUp(new.kind, new.name) != nil {
		panic(fmt.Sprintf("the %s %q is registered twice", new.kind, new.name))
	}
	handlers = append(handlers, new)
}

func lookUp(kind, name string) *handler {
	for index := range handlers {
		if handlers[index].kind == kind && handlers[index].name == name {
			return &handlers[index]
		}
	}
	return nil
}

// Action registers an action. Its input fits the schema before the handler sees it.
func Action[In, Out any](name string, options ActionOptions, run func(*Context, In) (Out, error)) {
	register(handler{
		kind:     "action",
		name:     name,
		manifest: actionManifest[In](name, options),
		action: func(context *Context, input string) (string, error) {
			var value In
			if err := wire.Decode(input, &value); err != nil {
				return "", InvalidRequest("The input does not fit: %v.", err)
			}
			output, err := run(context, value)
			if err != nil {
				return "", err
			}
			return wire.Encode(output)
		},
	})
}

func actionManifest[In any](name string, options ActionOptions) map[string]any {
	manifest := map[string]any{"name": name, "description": options.Description, "input": options.Input}
	if options.Input == nil {
		manifest["input"] = inputSchema[In]()
	}
	if options.Resource != "" {
		manifest["rbac"] = map[string]any{"resource": options.Resource, "action": options.Permission}
	}
	if options.Timeout > 0 {
		manifest["timeoutMs"] = options.Timeout.Milliseconds()
	}
	return manifest
}

// Hook registers a hook, which answers requests to /api/v1/hooks/<block>/<name>. Anybody may send them: the handler checks their
// signature. Where it answers with nil, the service answers 200.
func Hook(name string, options HookOptions, run func(*Context, *Request) (*Response, error)) {
	register(handler{
		kind:     "hook",
		name:     name,
		manifest: map[string]any{"name": name, "description": options.Description},
		hook:     run,
	})
}

// Subscription registers a handler of events. An error is a failed delivery, which is tried again.
func Subscription[Payload any](name string, options SubscriptionOptions, run func(*Context, Event[Payload]) error) {
	manifest := map[string]any{"handler": name}
	if options.Event != "" {
		manifest["event"] = options.Event
	}
	if options.Consumer != "" {
		manifest["consumer"] = options.Consumer
	}
	if options.Config != nil {
		manifest["config"] = options.Config
	}
	if options.PerInstance {
		manifest["perInstance"] = true
	}
	register(handler{
		kind:     "subscription",
		name:     name,
		manifest: manifest,
		event: func(context *Context, given blockbase_block_subscriptions.Event, config string) error {
			event := Event[Payload]{ID: given.Id, Topic: given.Topic, Attempt: int(given.Attempt), Config: json.RawMessage(config)}
			if err := wire.Decode(given.Payload, &event.Payload); err != nil {
				return InvalidRequest("The payload does not fit: %v.", err)
			}
			occurredAt, err := time.Parse(time.RFC3339Nano, given.OccurredAt)
			if err != nil {
				return InvalidRequest("The event's time is not valid: %v.", err)
			}
			event.OccurredAt = occurredAt
			return run(context, event)
		},
	})
}

func init() {
	dispatch.Handlers = func() []blockbase_block_registry.Handler {
		list := make([]blockbase_block_registry.Handler, 0, len(handlers))
		for _, handler := range handlers {
			list = append(list, blockbase_block_registry.Handler{Name: handler.name, Kind: handler.kind})
		}
		return list
	}
	dispatch.Action = func(given blockbase_block_types.Context, name, input string) (output string, failure *blockbase_block_types.Error) {
		err := guarded(given, "action", name, func(context *Context, handler *handler) (err error) {
			output, err = handler.action(context, input)
			return err
		})
		return output, err
	}
	dispatch.Hook = func(given blockbase_block_types.Context, name string, request blockbase_block_hooks.Request) (answer *blockbase_block_hooks.Response, failure *blockbase_block_types.Error) {
		err := guarded(given, "hook", name, func(context *Context, handler *handler) error {
			response, err := handler.hook(context, &Request{
				Method:        request.Method,
				Path:          request.Path,
				Query:         request.Query,
				Header:        headerOf(request.Headers),
				Body:          request.Body,
				RemoteAddress: request.RemoteAddress,
			})
			if err == nil && response != nil {
				answer = &blockbase_block_hooks.Response{Status: uint16(response.Status), Headers: fieldsOf(response.Header), Body: response.Body}
			}
			return err
		})
		return answer, err
	}
	dispatch.Event = func(given blockbase_block_types.Context, name string, event blockbase_block_subscriptions.Event, config string) *blockbase_block_types.Error {
		return guarded(given, "subscription", name, func(context *Context, handler *handler) error {
			return handler.event(context, event, config)
		})
	}
	dispatch.Manifest = manifest
}

func headerOf(fields []wit_types.Tuple2[string, []uint8]) Header {
	header := make(Header, 0, len(fields))
	for _, field := range fields {
		header = append(header, Field{Name: field.F0, Value: string(field.F1)})
	}
	return header
}

func fieldsOf(header Header) []wit_types.Tuple2[string, []uint8] {
	fields := make([]wit_types.Tuple2[string, []uint8], 0, len(header))
	for _, field := range header {
		fields = append(fields, wit_types.Tuple2[string, []uint8]{F0: valid(field.Name), F1: []byte(field.Value)})
	}
	return fields
}

// guarded finds the handler and runs it; whatever goes wrong in it is an error, and never a trap.
func guarded(given blockbase_block_types.Context, kind, name string, run func(*Context, *handler) error) (failure *blockbase_block_types.Error) {
	found := lookUp(kind, name)
	if found == nil {
		return hostError(NotFound("No such %s.", kind))
	}
	called := &Context{CallID: given.CallId, Block: given.Block}
	if given.Actor.IsSome() {
		actor := given.Actor.Some()
		called.Actor = &Actor{UserID: actor.UserId.SomeOr(""), APIKeyID: actor.ApiKeyId.SomeOr(""), Via: actor.Via}
	}
	var cancel context.CancelFunc
	called.Context, cancel = context.WithTimeout(context.Background(), called.Remaining())
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			// The trace is for the block's log, the message for the caller.
			fmt.Fprintf(os.Stderr, "panic: %v\n%s", cause, debug.Stack())
			failure = hostError(fmt.Errorf("panic: %v", cause))
		}
	}()
	if err := run(called, found); err != nil {
		return hostError(err)
	}
	return nil
}

// manifest is what the handlers say of themselves.
func manifest() string {
	said := map[string][]map[string]any{"actions": {}, "hooks": {}, "subscriptions": {}}
	for _, handler := range handlers {
		said[handler.kind+"s"] = append(said[handler.kind+"s"], handler.manifest)
	}
	text, err := wire.Encode(said)
	if err != nil {
		panic(err)
	}
	return text
}

// valid is text as the service takes it: bytes that are not UTF-8 would end the call.
func valid(text string) string {
	return strings.ToValidUTF8(text, "\uFFFD")
}
