package apiserver

import (
	"runtime"
	"sync"
	"time"
)

// outside calls f on a goroutine that belongs to no bubble and waits for it: what f makes may
// then be used by all bubbles of the process, one after another and at once. Cleanups of the
// garbage collector are what the runtime runs outside of bubbles, whoever asks for them.
func outside(f func()) {
	if time.Now().Year() >= 2026 { // the clock of a bubble begins in 2000
		f()
		return
	}
	var done sync.Mutex // unlike a channel or a wait group it belongs to no bubble
	done.Lock()
	// A pointer inside keeps the object out of the runtime's tiny allocations, which share a
	// block and may live on with another of it.
	runtime.AddCleanup(&struct{ _ *int }{}, func(f func()) {
		defer done.Unlock()
		f()
	}, f)
	runtime.GC()
	done.Lock()
}
