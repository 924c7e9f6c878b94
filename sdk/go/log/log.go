// Package log writes lines to the block's log, with the arguments of log/slog: a message, then keys and values.
//
//	log.Info("completed a task", "task", id)
package log

import (
	"bytes"
	"context"
	"log/slog"
	"strings"

	"blockbase/internal/bindings/imports/blockbase_block_log"
	"blockbase/internal/wit/types"
)

var logger = New()

func Error(message string, arguments ...any) { logger.Error(message, arguments...) }
func Warn(message string, arguments ...any)  { logger.Warn(message, arguments...) }
func Info(message string, arguments ...any)  { logger.Info(message, arguments...) }
func Debug(message string, arguments ...any) { logger.Debug(message, arguments...) }

// New is a logger of the standard library's that writes to the block's log; slog.SetDefault takes it.
func New() *slog.Logger {
	buffer := new(bytes.Buffer)
	options := &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(groups []string, attribute slog.Attr) slog.Attr {
			// The service has its own places for the time, the level and the message.
			if len(groups) == 0 && (attribute.Key == slog.TimeKey || attribute.Key == slog.LevelKey || attribute.Key == slog.MessageKey) {
				return slog.Attr{}
			}
			return attribute
		},
	}
	return slog.New(&handler{fields: slog.NewJSONHandler(buffer, options), buffer: buffer})
}

// handler lets the standard library write the fields as JSON, and sends them with the message.
type handler struct {
	fields slog.Handler
	buffer *bytes.Buffer
}

func (h *handler) Enabled(context.Context, slog.Level) bool {
	return true
}

func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	h.buffer.Reset()
	if err := h.fields.Handle(ctx, record); err != nil {
		return err
	}
	fields := wit_types.None[string]()
	if text := strings.TrimSpace(h.buffer.String()); text != "{}" {
		fields = wit_types.Some(text)
	}
	blockbase_block_log.Log(level(record.Level), strings.ToValidUTF8(record.Message, "\uFFFD"), fields)
	return nil
}

func (h *handler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return &handler{fields: h.fields.WithAttrs(attributes), buffer: h.buffer}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{fields: h.fields.WithGroup(name), buffer: h.buffer}
}

func level(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "error"
	case level >= slog.LevelWarn:
		return "warn"
	case level >= slog.LevelInfo:
		return "info"
	default:
		return "debug"
	}
}
