package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/go-logr/logr"

	"github.com/trimtab-dev/trimtab/internal/safelog"
)

// newLogger returns the logger of the process. Its level debug shows V(1) to V(4) of logr. It
// removes credentials from everything that is logged.
func newLogger(w io.Writer, format, level string) (logr.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level %q: use debug, info, warn or error", level)
	}
	switch {
	case format == "json", format == "auto" && !isTerminal(w):
		return safelog.Logger(jsonLogger(w, l)), nil
	case format == "text", format == "auto":
		return safelog.Logger(textLogger(w, l)), nil
	}
	return logr.Logger{}, fmt.Errorf("--log-format %q: use text, json or auto", format)
}

func jsonLogger(w io.Writer, l slog.Level) logr.Logger {
	return logr.FromSlogHandler(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l}))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// textHandler writes readable text: time, level and message in columns, then the attributes as
// slog's own text handler formats them.
type textHandler struct {
	attributes slog.Handler // writes to line
	line       *bytes.Buffer
	mu         *sync.Mutex // guards line and w, shared by handlers derived from one another
	w          io.Writer
}

func textLogger(w io.Writer, l slog.Level) logr.Logger {
	line := &bytes.Buffer{}
	builtin := []string{slog.TimeKey, slog.LevelKey, slog.MessageKey}
	attributes := slog.NewTextHandler(line, &slog.HandlerOptions{
		Level: l,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			for _, key := range builtin {
				if len(groups) == 0 && a.Key == key {
					return slog.Attr{}
				}
			}
			return a
		},
	})
	return logr.FromSlogHandler(textHandler{attributes: attributes, line: line, mu: &sync.Mutex{}, w: w})
}

func (h textHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return h.attributes.Enabled(ctx, l)
}

func (h textHandler) WithAttrs(a []slog.Attr) slog.Handler {
	h.attributes = h.attributes.WithAttrs(a)
	return h
}

func (h textHandler) WithGroup(name string) slog.Handler {
	h.attributes = h.attributes.WithGroup(name)
	return h
}

func (h textHandler) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.line.Reset()
	fmt.Fprintf(h.line, "%s  %-5s  %s  ", r.Time.Format("15:04:05.000"), r.Level, r.Message)
	if err := h.attributes.Handle(ctx, r); err != nil {
		return err
	}
	line := append(bytes.TrimRight(h.line.Bytes(), " \n"), '\n')
	_, err := h.w.Write(line)
	return err
}

// calmStop lowers the level of messages that are logged as errors when an operator shuts down, which is not an error: a leader
// releases its lease, the manager no longer waits for the events of the last passes, and requests are canceled.
type calmStop struct {
	slog.Handler
	stopping func() bool
}

func (h calmStop) Handle(ctx context.Context, r slog.Record) error {
	if h.stopping() && ofStop(r) {
		if !h.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		r.Level = slog.LevelDebug
	}
	return h.Handler.Handle(ctx, r)
}

// ofStop reports whether a message of a process that stops says no more than that: the manager no longer waits, or canceled
// a request that was under way.
func ofStop(r slog.Record) bool {
	switch r.Message {
	case "error received after stop sequence was engaged", "Unable to write event (broadcaster is shut down)":
		return true
	}
	canceled, failed := false, false
	r.Attrs(func(a slog.Attr) bool {
		if err, is := a.Value.Any().(error); is {
			canceled, failed = true, !onlyCanceled(err)
		}
		return !failed
	})
	return canceled && !failed && r.Level >= slog.LevelError
}

// onlyCanceled reports whether an error says that something was canceled, and nothing else.
func onlyCanceled(err error) bool {
	if joined, is := err.(interface{ Unwrap() []error }); is {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !onlyCanceled(e) })
	}
	if wrapped := errors.Unwrap(err); wrapped != nil {
		return onlyCanceled(wrapped)
	}
	return errors.Is(err, context.Canceled)
}

func (h calmStop) WithAttrs(a []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(a)
	return h
}

func (h calmStop) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
