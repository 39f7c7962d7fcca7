package fault

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
)

// stuck says why a run does not go on: the bubble waits for a goroutine that is blocked in a
// way that the simulated clock cannot end.
func stuck(after time.Duration, bubble string) error {
	buf := make([]byte, 8<<20)
	buf = buf[:runtime.Stack(buf, true)]
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		first, _, _ := strings.Cut(stack, "\n")
		if bubbleOf(stack) != bubble || strings.Contains(stack, "fault.(*worker).play") {
			continue // not the operator's
		}
		switch {
		case strings.Contains(first, "sync.Mutex.Lock"), strings.Contains(first, "sync.RWMutex"):
			return fmt.Errorf("nothing moves for %v: the operator holds a lock while it calls the API, and another goroutine waits for the lock at %s; release locks before calls", after, userFrame(stack))
		case strings.Contains(first, "[IO wait"), strings.Contains(first, "[syscall"):
			return fmt.Errorf("nothing moves for %v: the operator talks to a real socket or file at %s; give it the manager's config, and fault.HTTP for vendors", after, userFrame(stack))
		case strings.Contains(first, "[runn") && !strings.Contains(stack, "fault.stuck("):
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
