package run

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// stuck says why a run does not go on: the bubble waits for a goroutine that is blocked in a
// way that the simulated clock cannot end.
func stuck(after time.Duration, bubble string) error {
	buf := make([]byte, 8<<20)
	buf = buf[:runtime.Stack(buf, true)]
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		first, _, _ := strings.Cut(stack, "\n")
		if bubbleOf(stack) != bubble || strings.Contains(stack, "run.(*Worker).Play") {
			continue // not the operator's
		}
		switch {
		case strings.Contains(first, "sync.Mutex.Lock"), strings.Contains(first, "sync.RWMutex"):
			return fmt.Errorf("nothing moves for %v: the operator holds a lock while it calls the API, and another goroutine waits for the lock at %s; release locks before calls", after, userFrame(stack))
		case strings.Contains(first, "[IO wait"), strings.Contains(first, "[syscall"):
			return fmt.Errorf("nothing moves for %v: the operator talks to a real socket or file at %s; give it the manager's config, and fault.HTTP for the external API", after, userFrame(stack))
		case strings.Contains(first, "[runn") && !strings.Contains(stack, "run.stuck("):
			return fmt.Errorf("nothing moves for %v: the operator computes without end at %s", after, userFrame(stack))
		case !strings.Contains(first, "durable") && (strings.Contains(first, "[chan ") || strings.Contains(first, "[select")):
			return fmt.Errorf("nothing moves for %v: the operator waits at %s for a channel made outside of the bubble, by init, a package variable or a goroutine started before; make it in the function given as Operator", after, userFrame(stack))
		}
	}
	return errors.New("nothing moves for " + after.String() + ", and no goroutine of the operator shows why; run the test with -timeout to see all stacks")
}

// userFrame returns the first place in a stack that is neither the runtime's nor a library's
// that everybody uses.
func userFrame(stack string) string {
	lines := strings.Split(stack, "\n")
	for i := 1; i+1 < len(lines); i += 2 {
		if isLibrary(strings.TrimPrefix(lines[i], "created by ")) {
			continue
		}
		place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
		return place
	}
	return "an unknown place"
}

func isLibrary(frame string) bool {
	for _, prefix := range []string{"sync.", "runtime.", "internal/", "time.", "net", "os.", "syscall.", "context.", "io.", "bufio.", "crypto/", "k8s.io/", "sigs.k8s.io/", "testing"} {
		if strings.HasPrefix(frame, prefix) {
			return true
		}
	}
	return false
}

// knownLeak is in the stacks of goroutines that the filter of metadata-only informers leaves for ever although the operator did nothing
// wrong: it has taken an event that nobody wants any more. See https://github.com/kubernetes/kubernetes/issues/113254.
const knownLeak = "k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop("

// findLeaks notes which goroutines of the operator are left a minute after it ended, and reports whether
// there are any, whether one of them is not known, and whether one is within the server.
func findLeaks(r *history.Run) (left, unknown, serving bool) {
	stacks := bubbleGoroutines()
	if len(stacks) > 0 {
		time.Sleep(time.Minute) //nolint:forbidigo // of the simulated clock
		stacks = bubbleGoroutines()
	}
	left, serving = len(stacks) > 0, slices.ContainsFunc(stacks, isServing)
	if !left || len(r.Processes) == 0 {
		return left, left, serving
	}
	stacks = slices.DeleteFunc(stacks, func(stack string) bool { return strings.Contains(stack, knownLeak) })
	r.Processes[len(r.Processes)-1].Leaked = strings.Join(stacks, "\n\n")
	return left, len(stacks) > 0, serving
}

// isServing reports whether a goroutine is part of a request, which a server cannot leave behind.
func isServing(stack string) bool {
	return strings.Contains(stack, "k8s.io/apiserver/") || strings.Contains(stack, "/kubesim/internal/")
}

// buffers are for the stacks of all goroutines: asking again because one was too short costs as much as the
// first time.
//
//arch:state a pool of buffers
var buffers = sync.Pool{New: func() any { return new(make([]byte, 256<<10)) }}

// bubbleGoroutines returns the stacks of the other goroutines of the bubble that it is called in.
func bubbleGoroutines() []string {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	n := runtime.Stack(*buf, true)
	for n == len(*buf) {
		*buf = make([]byte, 2*n)
		n = runtime.Stack(*buf, true)
	}
	stacks := strings.Split(string((*buf)[:n]), "\n\n")
	bubble := bubbleOf(stacks[0])
	return slices.DeleteFunc(stacks, func(s string) bool {
		return bubbleOf(s) != bubble || s == stacks[0] || strings.Contains(s, "\ntesting/synctest.")
	})
}

// ownBubble returns the name of the bubble that it is called in.
func ownBubble() string {
	buf := make([]byte, 128)
	return bubbleOf(string(buf[:runtime.Stack(buf, false)]))
}

// bubbleOf returns the name of the bubble in a stack's first line: "synctest bubble 7".
func bubbleOf(stack string) string {
	first, _, _ := strings.Cut(stack, "\n")
	_, bubble, ok := strings.Cut(first, "synctest bubble ")
	if !ok {
		return ""
	}
	return strings.TrimRight(bubble, "]:")
}
