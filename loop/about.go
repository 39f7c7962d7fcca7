package loop

import (
	"sync/atomic"

	"github.com/go-logr/logr"
)

// about is a sink of what controller-runtime logs of a pass, such as its error. Once the pass has read its object, lines have
// the name and the keys that the author's lines have.
type about struct {
	logr.LogSink
	// plain is the sink for others than logr, which do not add the frame of this one.
	plain logr.LogSink
	pass  atomic.Pointer[logr.Logger]
}

// aboutPasses returns the logger that controller-runtime is given.
func aboutPasses(l logr.Logger) logr.Logger {
	if l.GetSink() == nil {
		return l
	}
	return l.WithSink(newAbout(l.GetSink()))
}

func newAbout(plain logr.LogSink) *about { return &about{LogSink: deeper(plain), plain: plain} }

// deeper returns a sink for calls with one more frame.
func deeper(sink logr.LogSink) logr.LogSink {
	if s, counts := sink.(logr.CallDepthLogSink); counts {
		return s.WithCallDepth(1)
	}
	return sink
}

// logTo returns the logger of a pass, which with derives from l. What controller-runtime says of the pass is logged by it, too.
func logTo(l logr.Logger, with func(logr.Logger) logr.Logger) logr.Logger {
	a, is := l.GetSink().(*about)
	if !is {
		return with(l)
	}
	l = with(l.WithSink(a.plain))
	a.pass.Store(&l)
	return l
}

func (a *about) sink() logr.LogSink {
	if l := a.pass.Load(); l != nil {
		return deeper(l.GetSink())
	}
	return a.LogSink
}

// Init implements [logr.LogSink]; the sink below is initialised already.
func (*about) Init(logr.RuntimeInfo) {}

func (a *about) Info(level int, msg string, pairs ...any) { a.sink().Info(level, msg, pairs...) }

func (a *about) Error(err error, msg string, pairs ...any) { a.sink().Error(err, msg, pairs...) }

// WithValues returns the sink of another pass, because controller-runtime gives each an id. Without values it is the same one.
func (a *about) WithValues(pairs ...any) logr.LogSink {
	if len(pairs) == 0 { // whoever takes the logger from a context adds none
		return a
	}
	return newAbout(a.plain.WithValues(pairs...))
}

func (a *about) WithName(name string) logr.LogSink { return newAbout(a.plain.WithName(name)) }

// WithCallDepth implements [logr.CallDepthLogSink].
func (a *about) WithCallDepth(depth int) logr.LogSink {
	if s, counts := a.sink().(logr.CallDepthLogSink); counts {
		return s.WithCallDepth(depth)
	}
	return a
}
